"""DuckDB files: their opening, migration and inspection."""
