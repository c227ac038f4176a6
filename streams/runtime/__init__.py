"""Foundations: clocks, timers, threads, child processes, and how work is ended."""
