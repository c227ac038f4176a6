"""A worker: its parts, what it does by the clock, and how well it is."""
