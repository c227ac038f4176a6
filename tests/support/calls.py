"""Counts the function calls that our code makes: a measure of work that no other load on the machine changes.

Counted are calls of functions in `schemas`, `tables` and `streams`, and the calls that these make to anything else,
Python or C: the events that cProfile counts, but not what libraries do inside, which differs from version to version.
A comprehension is no call: from Python 3.12 on it is none, and before it would be one. A generator is one for each of
its values.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import duckdb

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / package}/" for package in ("schemas", "tables", "streams"))
COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})


class Calls:
    """Calls made within `counted()`, in this thread and in those that were started within `watched()`."""

    def __init__(self) -> None:
        self._by_thread: Counter[int] = Counter()
        self._kinds: dict[CodeType, bool] = {}
        self._on = False

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Threads that start in this block are looked at as well."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Calls of this block count. No garbage is collected in it: that is done when it pleases."""
        gc.disable()
        self._on = True
        try:
            yield
        finally:
            self._on = False
            gc.enable()

    @property
    def total(self) -> int:
        return sum(self._by_thread.values())

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        if not self._on:
            return
        if event == "call":
            code, caller = frame.f_code, frame.f_back
            if self._is_ours(code):
                counts = code.co_name not in COMPREHENSIONS
            else:
                counts = caller is not None and self._is_ours(caller.f_code)
        else:
            counts = event == "c_call" and self._is_ours(frame.f_code)
        if counts:
            self._by_thread[threading.get_ident()] += 1

    def _is_ours(self, code: CodeType) -> bool:
        known = self._kinds.get(code)
        if known is None:
            known = self._kinds[code] = code.co_filename.startswith(OURS)
        return known


class Statements:
    """SQL statements, each as often as DuckDB executes it: `executemany` is one for each of its rows."""

    def __init__(self) -> None:
        self.total = 0

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Of every connection that is opened in this block, whenever it is used."""
        connect = duckdb.connect
        with mock.patch("duckdb.connect", lambda *args, **kwargs: _Counting(connect(*args, **kwargs), self)):
            yield


class _Counting:
    """A DuckDB connection, or a cursor of it, that counts."""

    def __init__(self, connection: Any, statements: Statements) -> None:
        self._connection, self._statements = connection, statements

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def cursor(self) -> _Counting:
        return _Counting(self._connection.cursor(), self._statements)

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        self._statements.total += 1
        return self._connection.execute(*args, **kwargs)

    def executemany(self, query: str, rows: Sequence[Any]) -> Any:
        self._statements.total += len(rows)
        return self._connection.executemany(query, rows)

    def sql(self, *args: Any, **kwargs: Any) -> Any:
        self._statements.total += 1
        return self._connection.sql(*args, **kwargs)

    query = sql
