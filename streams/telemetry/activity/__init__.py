"""What a worker does just now, for whoever looks: kept in memory, bounded, and written nowhere."""
