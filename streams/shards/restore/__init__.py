"""Takes checkpoints of shards and windows, and restores them when a partition is assigned."""
