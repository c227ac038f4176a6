"""Checkpoints of shards and windows: taken, and restored where a partition is assigned."""
