"""Whether the broker lets this worker in, and goes on to."""
