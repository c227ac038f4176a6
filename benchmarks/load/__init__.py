"""A steady load on a worker, and what is seen of it: the parts of `sustained.py`."""
