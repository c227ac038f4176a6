"""Sentences with their noun phrases in brackets, and libraries that find noun phrases."""
