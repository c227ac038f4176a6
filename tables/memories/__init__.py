"""One partition's long-term memory: what a batch of events changes in it, and what is forgotten."""
