"""A shard's vectors: their file, the FAISS index of them, and a set of the ids that the shard may hold."""
