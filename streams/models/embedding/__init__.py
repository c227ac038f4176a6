"""Embedding: models that turn texts into vectors for search."""
