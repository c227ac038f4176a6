"""A hold on a catalog's files: while it lasts, they still contain what they held when it began.

DuckDB changes its main file at its checkpoints only: between two of them it writes the log beside it, and bulk
appends go into blocks that no header names. So a checkpoint is made first, and then none until the hold ends.
Vectors are appended; those of removed memories are zeroed after the hold. Forgetting does not wait: it breaks the
hold, as does the replacement of a file, and the copy has to be started over.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import duckdb

from tables.memories.catalog.catalog_file import CatalogFile

log = logging.getLogger(__name__)


class Held:
    """What a hold is known by. Any thread may ask whether it still lasts."""

    def __init__(self) -> None:
        self._broken = threading.Event()

    @property
    def broken(self) -> bool:
        """Whether what is read of the files from now on may be of a later moment."""
        return self._broken.is_set()

    def give_up(self) -> None:
        self._broken.set()


class Hold:
    """One at a time; on the thread of the catalog's owner."""

    def __init__(self, file: CatalogFile) -> None:
        self._file = file
        self._held: Held | None = None
        self._later: list[Callable[[], None]] = []

    def begin(self) -> Held:
        """Bring the files to one state, and keep it in them. Raises `duckdb.Error`."""
        self.end()
        self._file.hold()
        self._held = Held()
        return self._held

    def later(self, work: Callable[[], None]) -> bool:
        """Whether there is a hold: `work`, which would change what it keeps, is then done when it ends."""
        if self._held is not None:
            self._later.append(work)
        return self._held is not None

    def end(self, held: Held | None = None) -> None:
        """End this hold, or whichever there is. What was put off is done now."""
        if self._held is None or held not in (None, self._held):
            return
        self._held.give_up()
        self._held, later, self._later = None, self._later, []
        try:
            self._file.release()
        except duckdb.Error as exc:  # its connection ends just now; the next one checkpoints again
            log.debug("%s: %s", self._file.path, exc)
        for work in later:
            work()
