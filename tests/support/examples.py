"""On how many examples a property is tried: on a few in `make test`, on all of them in `make test-all`."""

from __future__ import annotations

import os

from hypothesis import settings

#: The variable that asks for all of them.
ALL_EXAMPLES = "ALL_EXAMPLES"
_FEW = 5
#: Of a property that says nothing of it.
USUAL = 100


def examples(count: int, few: int | None = None) -> settings:
    """A `few` of them, a fifth where that is not said, or all, of however long each of them takes."""
    if os.environ.get(ALL_EXAMPLES):
        return settings(max_examples=count, deadline=None)
    return settings(max_examples=max(2, count // _FEW) if few is None else few, deadline=None)
