"""Long-term memory: events of the topic `long-term` change the shards, and jobs let memories age."""
