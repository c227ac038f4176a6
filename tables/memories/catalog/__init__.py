"""The catalog: the rows of a shard's DuckDB file, and the statements over them."""
