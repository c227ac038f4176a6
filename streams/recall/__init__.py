"""Recall: the search in users' memories and short-term windows."""
