"""Shards that no process has open: compared, rebuilt, carried over."""
