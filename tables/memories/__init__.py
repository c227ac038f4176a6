"""Shards: one partition's long-term memories, and how a batch of events changes them."""
