"""A shard's DuckDB file: its rows, their migrations, and the statements over them."""
