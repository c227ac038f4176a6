"""Authentication and authorization: the same rule for every entry point."""
