"""A worker in the tests' own process, on the real broker, DuckDB, FAISS and HTTP."""
