"""The topics read once more, beside the workers: the windows' decisions again, and shards out of the log."""
