"""Shards that nobody has open: inspected, compared, rebuilt, carried over."""
