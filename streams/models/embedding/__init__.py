"""Embedding: texts become vectors."""
