"""What is kept outside of the shards is forgotten with them."""
