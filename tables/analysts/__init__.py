"""The analysts' copy, and the numbers over several shards."""
