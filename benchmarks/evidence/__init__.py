"""Questions with known evidence, asked of a worker: the sets, the run through a worker, and the measures."""
