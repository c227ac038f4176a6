"""Data that a search reads of a shard without SQL: rows, terms and bodies in mapped files, and caches over them."""
