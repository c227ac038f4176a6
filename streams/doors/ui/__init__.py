"""The dashboard: web pages that show what a worker does, and what it remembers."""
