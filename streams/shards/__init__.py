"""The shards of the partitions that this worker owns."""
