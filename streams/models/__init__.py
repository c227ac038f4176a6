"""Models that are asked: embedding models, and chat models."""
