"""A shard's FAISS file, and the ids that it may hold."""
