"""Questions find memories, and what was said a moment ago."""
