"""Opens DuckDB databases. Each uses one thread, and no more memory than its limit.

Without a limit, each database would use up to 80 % of the machine's memory, for pages that it has read once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy.ma  # noqa: F401 (DuckDB loads it when it first converts a NULL to numpy)

# `numpy.ma` is imported above because two shards' threads may need it at the same moment: numpy loads such parts on
# demand (`numpy.__getattr__`) without a lock, and `numpy.ma` would then call itself until the stack overflows.

#: Memory limit (bytes) of a database that is opened only for a moment, to be read, compared or assembled.
BRIEFLY: Final = 512 << 20

#: Memory limit (bytes) of a shard's catalog in a command, where no worker divides memory among shards.
ALONE: Final = 1 << 30


def connect(
    path: Path | None = None, *, memory: int = BRIEFLY, read_only: bool = False, **options: str | bool
) -> duckdb.DuckDBPyConnection:
    """Open the database at `path`, or a new one in memory, limited to `memory` bytes.

    If the database needs more, it writes temporary files into `path`.tmp. A database in memory can do so only if
    `temp_directory` is given.
    """
    if path is None:
        options = {"temp_directory": "", **options}  # otherwise temporary files would go to the working directory
    place = ":memory:" if path is None else str(path)
    config: dict[str, Any] = {"threads": 1, "memory_limit": _size(memory), **options}
    return duckdb.connect(place, read_only=read_only, config=config)


def limit_memory(db: duckdb.DuckDBPyConnection, memory: int) -> None:
    """Change the memory limit of an open database to this number of bytes."""
    db.execute(f"SET memory_limit = '{_size(memory)}'")


def _size(memory: int) -> str:
    return f"{memory}B"


class Interruption:
    """Interrupts a database's running statement from another thread. Call `check` before the next statement."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._db: duckdb.DuckDBPyConnection | None = None
        self._called = False

    @contextmanager
    def reaches(self, db: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Inside the block, `call` interrupts `db`. Raises `duckdb.InterruptException` if `call` was used before."""
        with self._lock:
            self._db = db
        try:
            self.check()
            yield
        finally:
            with self._lock:  # from now on `call` cannot reach `db`, so the caller can close it
                self._db = None

    def check(self) -> None:
        """Raise `duckdb.InterruptException` if `call` was called."""
        if self._called:
            raise duckdb.InterruptException("it was interrupted")

    def call(self) -> None:
        """Interrupt the running statement, if any. Repeat this until the work has ended.

        One call is not enough, because between two statements there is nothing to interrupt.
        """
        with self._lock:
            self._called = True
            if self._db is not None:
                self._db.interrupt()
