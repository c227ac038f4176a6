"""Forgetting outside of the shards: windows, summaries and Kafka's records."""
