"""State by the million, and workers that come and go: the parts of `scale.py`."""
