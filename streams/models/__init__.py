"""Embedding models and chat models."""
