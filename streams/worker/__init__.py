"""A worker: its parts, its timed jobs, and its health."""
