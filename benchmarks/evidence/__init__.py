"""Questions with evidence, asked of a worker: the sets, the way through the worker, and the measures."""
