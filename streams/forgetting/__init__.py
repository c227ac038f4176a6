"""Forgetting of users' data outside of the shards: in windows and summaries. Kafka's records are only listed."""
