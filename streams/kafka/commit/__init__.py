"""The commit protocol: what must be acknowledged before an offset is committed."""
