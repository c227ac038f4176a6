"""Foundations of a worker: clocks, timers, threads, child processes, and the cancellation of work."""
