"""Checks that the broker lets this worker in, and continues to."""
