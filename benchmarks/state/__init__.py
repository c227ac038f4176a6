"""A million memories, and workers that start and stop: the parts of `scale.py`."""
