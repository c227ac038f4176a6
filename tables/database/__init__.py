"""DuckDB files: opened, migrated, inspected."""
