"""The data of a shard that a search reads without SQL: rows, terms and bodies in mapped files, and caches of them."""
