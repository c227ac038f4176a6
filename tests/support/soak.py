"""Which of the tests marked `soak` run: all of them, none, or the sample that a commit's hash chooses.

They repeat one fault many times. `make soak` runs all of them; `make test-all` and `make test-kafka` run every
`ONE_OF`th, beginning at a place that the hash gives, so that each of them comes up within some commits.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import pytest

ONE_OF: Final = 6
ALL: Final = "all"
NONE: Final = "none"
_HASH: Final = re.compile("[0-9a-fA-F]+")


def sample(tests: Collection[str], commit: str) -> set[str]:
    """Of these tests' names, those whose turn it is at the commit (a hexadecimal hash)."""
    first = int(commit, 16) % ONE_OF
    return set(sorted(tests)[first::ONE_OF])


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the tests out of `items` that `--soak` does not choose."""
    which = config.getoption("--soak")
    if which == ALL:
        return
    if which != NONE and not _HASH.fullmatch(which):
        raise pytest.UsageError(f"--soak={which}: say {ALL}, {NONE}, or the hash of a commit")
    repeating = {item.nodeid for item in items if item.get_closest_marker("soak")}
    chosen = set() if which == NONE else sample(repeating, which)
    left_out = [item for item in items if item.nodeid in repeating - chosen]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.nodeid not in repeating - chosen]
