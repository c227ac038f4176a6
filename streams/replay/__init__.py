"""Replays of the topics while the workers run: decide on the exchanges again, and rebuild shards from the log."""
