"""On how many examples a property is tried: on a few in `make test`, on all of them in `make test-all`."""

from __future__ import annotations

import os

from hypothesis import settings

_FEW = 5


def examples(count: int) -> settings:
    """A fifth of them, or all, of however long each of them takes."""
    return settings(max_examples=count if os.environ.get("ALL_EXAMPLES") else max(2, count // _FEW), deadline=None)
