"""What a partition's state is, in blocks: taken to object storage, verified, and given back."""
