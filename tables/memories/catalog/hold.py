"""Hold: keeps the contents of a catalog's files unchanged for a time, so that they can be copied.

DuckDB changes its main file only at its own checkpoints. Between two checkpoints it writes into the write-ahead log,
and bulk appends go into blocks that no header names yet. So a hold begins with a DuckDB checkpoint, and prevents
further checkpoints until the hold ends. New vectors are appended to the file of vectors. The vectors of removed
memories are zeroed after the hold. Forgetting does not wait for the end of a hold: it breaks the hold, and the copy
must be started again. The replacement of a file breaks the hold as well.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import duckdb

from tables.memories.catalog.catalog_file import CatalogFile

log = logging.getLogger(__name__)


class Held:
    """The handle of a hold. Any thread may read `broken`."""

    def __init__(self) -> None:
        self._broken = threading.Event()

    @property
    def broken(self) -> bool:
        """True if the hold has ended. Bytes that were read after its end may belong to a later state of the files."""
        return self._broken.is_set()

    def give_up(self) -> None:
        self._broken.set()


class Hold:
    """Begins and ends holds, one at a time. Not thread-safe: use it on the shard's thread."""

    def __init__(self, file: CatalogFile) -> None:
        self._file = file
        self._held: Held | None = None
        self._later: list[Callable[[], None]] = []

    def begin(self) -> Held:
        """End the present hold, if any, and begin a new one. Raises `duckdb.Error`."""
        self.end()
        self._file.hold()
        self._held = Held()
        return self._held

    def later(self, work: Callable[[], None]) -> bool:
        """Postpone `work`, which would change held bytes, until the hold ends. Return False if there is no hold."""
        if self._held is not None:
            self._later.append(work)
        return self._held is not None

    def end(self, held: Held | None = None) -> None:
        """End the hold `held`, or the present hold if no argument is given, and run the postponed work.

        If `held` is not the present hold, it has ended already, and nothing is done.
        """
        if self._held is None or held not in (None, self._held):
            return
        self._held.give_up()
        self._held, later, self._later = None, self._later, []
        try:
            self._file.release()
        except duckdb.Error as exc:  # the connection is closing; a new one makes checkpoints again
            log.debug("%s: %s", self._file.path, exc)
        for work in later:
            work()
