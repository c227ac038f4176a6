"""The embedded broker, which a worker starts as its child process. `journal` stores the broker's data."""
