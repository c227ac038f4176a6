"""Checkpoints: a partition's state as blocks in an object store, verified and restored from there."""
