"""The outside: the embedded broker, topics, and embedding models."""
