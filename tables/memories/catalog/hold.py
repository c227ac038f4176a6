"""Hold: keeps the contents of a catalog's files as they were when it began, so that they can be copied.

DuckDB changes its main file only at its own checkpoints: between two of them it writes the log beside it, and bulk
appends go into blocks that no header names. So a hold begins with a DuckDB checkpoint, and then allows none until it
ends. Vectors are appended; those of removed memories are zeroed after the hold. Forgetting does not wait: it breaks
the hold, as does the replacement of a file, and the copy has to be started over.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import duckdb

from tables.memories.catalog.catalog_file import CatalogFile

log = logging.getLogger(__name__)


class Held:
    """The handle of a hold. Any thread may ask whether it is broken."""

    def __init__(self) -> None:
        self._broken = threading.Event()

    @property
    def broken(self) -> bool:
        """Whether reads of the files from now on may find a later state."""
        return self._broken.is_set()

    def give_up(self) -> None:
        self._broken.set()


class Hold:
    """One hold at a time. Not thread-safe: use it on the shard's thread."""

    def __init__(self, file: CatalogFile) -> None:
        self._file = file
        self._held: Held | None = None
        self._later: list[Callable[[], None]] = []

    def begin(self) -> Held:
        """Bring the files to one state, and keep it. Raises `duckdb.Error`."""
        self.end()
        self._file.hold()
        self._held = Held()
        return self._held

    def later(self, work: Callable[[], None]) -> bool:
        """Return whether there is a hold. If so, `work`, which would change held bytes, runs when it ends."""
        if self._held is not None:
            self._later.append(work)
        return self._held is not None

    def end(self, held: Held | None = None) -> None:
        """End this hold, or any hold if none is named. Postponed work runs now."""
        if self._held is None or held not in (None, self._held):
            return
        self._held.give_up()
        self._held, later, self._later = None, self._later, []
        try:
            self._file.release()
        except duckdb.Error as exc:  # the connection is ending; the next one makes checkpoints again
            log.debug("%s: %s", self._file.path, exc)
        for work in later:
            work()
