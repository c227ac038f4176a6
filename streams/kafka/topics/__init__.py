"""Checks the topics: against their specifications at the start, and for changes while the worker runs."""
