"""DuckDB databases: each works with one thread, and with no more memory than it is given.

Without a limit an instance takes up to 80 % of the machine's memory, each of them, for pages that it has read once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy.ma  # noqa: F401 (DuckDB loads it with the first NULL that it hands over as numpy's)

# Two shards' threads may be the first at one moment, and `numpy.ma` then calls itself until the stack ends: numpy
# loads such parts when they are asked for (`numpy.__getattr__`), and nothing locks the moment before they are there.

#: Memory limit of a database that is read, compared or assembled, and then closed: bytes.
BRIEFLY: Final = 512 << 20

#: Memory limit of a shard's catalog without a worker that divides memory among shards, as in a command: bytes.
ALONE: Final = 1 << 30


def connect(
    path: Path | None = None, *, memory: int = BRIEFLY, read_only: bool = False, **options: str | bool
) -> duckdb.DuckDBPyConnection:
    """The database at `path`, or one in memory, which works with `memory` bytes.

    What needs more goes to the disk, to `path`.tmp. One in memory has no such place unless `temp_directory` names it.
    """
    if path is None:
        options = {"temp_directory": "", **options}  # else it would be where the process was started
    place = ":memory:" if path is None else str(path)
    config: dict[str, Any] = {"threads": 1, "memory_limit": _size(memory), **options}
    return duckdb.connect(place, read_only=read_only, config=config)


def limit_memory(db: duckdb.DuckDBPyConnection, memory: int) -> None:
    """Work with so many bytes from now on."""
    db.execute(f"SET memory_limit = '{_size(memory)}'")


def _size(memory: int) -> str:
    return f"{memory}B"


class Interruption:
    """Ends a database's running statement from another thread. Call `check` before the next statement."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._db: duckdb.DuckDBPyConnection | None = None
        self._called = False

    @contextmanager
    def reaches(self, db: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Inside the block `call` interrupts `db`. Raises `duckdb.InterruptException`."""
        with self._lock:
            self._db = db
        try:
            self.check()
            yield
        finally:
            with self._lock:  # the caller closes `db` afterwards, when `call` cannot reach it any more
                self._db = None

    def check(self) -> None:
        """Raises `duckdb.InterruptException` once `call` was called."""
        if self._called:
            raise duckdb.InterruptException("it was given up")

    def call(self) -> None:
        """Repeat it until the work has ended: a call between two statements may interrupt neither."""
        with self._lock:
            self._called = True
            if self._db is not None:
                self._db.interrupt()
