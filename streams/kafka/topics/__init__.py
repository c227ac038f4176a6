"""Compares a worker's topics with their specifications at the start, and watches them while the worker runs."""
