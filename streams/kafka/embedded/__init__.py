"""The broker that a worker starts as its child, and its data."""
