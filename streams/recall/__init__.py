"""Search in memories and in short-term windows."""
