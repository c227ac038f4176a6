"""The documentation does not lie."""
