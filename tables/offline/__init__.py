"""Shards that no process has open: inspected, compared, rebuilt, carried over."""
