"""A worker's current activity, for the dashboard: kept in memory, bounded, and written nowhere."""
