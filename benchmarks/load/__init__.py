"""A steady load on a worker, and its measurement: the parts of `sustained.py`."""
