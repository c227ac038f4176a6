"""What we keep: the short-term window, and the shards of long-term memory. May import `schemas`."""
