"""A shard's vectors: their file, the FAISS index over it, and the ids that the shard may hold."""
