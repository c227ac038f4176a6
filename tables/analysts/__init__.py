"""The analysts' copy, and statistics over several shards."""
