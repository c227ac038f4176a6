"""The worker's HTTP API."""
