"""Stores all state: the short-term windows, and the shards of long-term memory. May import only `schemas`."""
