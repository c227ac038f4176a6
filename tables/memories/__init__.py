"""Shards: the long-term memories of one partition, and the code that applies a batch of events to them."""
