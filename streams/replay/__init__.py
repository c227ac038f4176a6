"""Replay of the topics, beside the workers: decide on the windows again, and rebuild shards from the log."""
