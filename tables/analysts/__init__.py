"""The analysts' copy of all shards' rows, and statistics over several shards."""
