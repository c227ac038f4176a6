"""DuckDB files: opening, migration, inspection."""
