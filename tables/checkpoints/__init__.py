"""Checkpoints: copies of a partition's state in an object store, from which a worker can restore the partition."""
