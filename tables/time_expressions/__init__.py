"""Time expressions of a text, resolved to windows of time."""
