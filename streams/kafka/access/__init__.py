"""Checks that the broker grants access to this worker, at the start and while it runs."""
