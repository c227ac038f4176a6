"""long-term: events change the shards, and memories age."""
