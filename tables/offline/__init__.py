"""Work on shards that no process has open: comparing them, rebuilding them, carrying data over to a new shard."""
