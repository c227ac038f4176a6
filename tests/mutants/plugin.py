"""What pytest is told in a mutant's run, beside what it is told in any."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import shared_catalog

#: mutmut 3 reads an item's id by this name, which items of pytest 9.2 do not have any more.
pytest.Item._nodeid = property(lambda item: item.nodeid)  # type: ignore[attr-defined]

_migrated, _held = shared_catalog.migrated, contextlib.ExitStack()
_FOLDER = Path.cwd() / "catalog"


@contextlib.contextmanager
def _once(folder: Path) -> Iterator[None]:
    """The catalog that others begin as is made by the first run; those of the mutants, forked from it, have it."""
    if not _FOLDER.exists():
        _FOLDER.mkdir()
        _held.enter_context(_migrated(_FOLDER))
    yield


shared_catalog.migrated = _once
