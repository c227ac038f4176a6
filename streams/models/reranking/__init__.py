"""Rerankers: models that put the best candidates of a search in order."""
