"""A mapped file with a row of fixed size for each memory: ranking data, and the offsets of terms and body.

Rows are ordered by the memory's number (`seq`). New memories have higher numbers, so their rows are appended. Most
numbers are consecutive, so the place of each row is found with little memory (`tables/runs.py`). The first row is the
header: its `seq` is a magic number, `user` the generation, `created_at` the version of the term rules, and `terms_at`
the catalog's counter of changes.
"""

from __future__ import annotations

import mmap
import os
import zlib
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.memories import MEMORY_COLUMNS
from tables.runs import Places, Runs
from tables.search.tokens import RULES

Rows = npt.NDArray[np.void]

#: Times are epoch ms. `user`, `session` and `speakers` are hashes; `session` and `speakers` are 0 if there are none.
#: `terms_at` and `body_at` are offsets in bytes in `search.terms` and `search.bodies`. `terms` is a number of words,
#: `body` a number of bytes. `check` is a checksum of the `_CHECKED` fields.
ROW: Final = np.dtype(
    [
        ("seq", "<i8"),
        ("user", "<u8"),
        ("session", "<u8"),
        ("created_at", "<i8"),
        ("terms_at", "<i8"),
        ("body_at", "<i8"),
        ("importance", "<f8"),
        ("last_accessed", "<i8"),
        ("access_count", "<u4"),
        ("terms", "<u4"),
        ("body", "<u4"),
        ("body_check", "<u4"),
        ("speakers", "<u4"),
        ("check", "<u4"),
        ("length", "<f4"),
        ("flags", "<u4"),
    ]
)


class Row(NamedTuple):
    """A row as a tuple of Python numbers."""

    seq: int
    user: int
    session: int
    created_at: int
    terms_at: int
    body_at: int
    importance: float
    last_accessed: int
    access_count: int
    terms: int
    body: int
    body_check: int
    speakers: int
    check: int
    length: float
    flags: int


def each(rows: Rows) -> list[Row]:
    """Return the rows as a list of tuples."""
    return [Row(*row) for row in rows.tolist()]


_OF_ACCESS: Final = {"importance", "last_accessed", "access_count", "check", "flags"}
_CHECKED: Final = tuple(name for name in ROW.names or () if name not in _OF_ACCESS)
HELD: Final = 1  #: The terms of the row are written.
BODY: Final = 2  #: The body of the row is written and is not stale.
PINNED: Final = 4
CURRENT: Final = 8
GONE: Final = 16

#: The fields of a memory that its body has, in the order of the body.
BODY_FIELDS: Final = tuple(name for name, column in MEMORY_COLUMNS.items() if not column.ranked)
#: Marks a file of this format. Other fields of the bodies are another format, so that old bodies are not read.
_MAGIC: Final = 0x31_73776F_52746C53 ^ zlib.crc32(",".join(BODY_FIELDS).encode())
_MORE: Final = 1024


class RowFile:
    """The file of rows. `rows` is a view of the file without its header. To assign to `rows` changes the file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._mapping: mmap.mmap | None = None
        self._all: Rows = np.zeros(0, ROW)
        self._count, self._runs = 0, Runs()

    @property
    def rows(self) -> Rows:
        return self._all[1 : 1 + self._count]

    @property
    def seqs(self) -> npt.NDArray[np.int64]:
        """The memory numbers of the rows, ascending. The array is a view of the file."""
        seqs: npt.NDArray[np.int64] = self.rows["seq"]
        return seqs

    def load(self, generation: int, changes: int) -> bool:
        """Map the file. Return True if its rows are in order and its header has this generation and these `changes`.

        `changes` is the catalog's counter of changes. The counter in the header may be one lower, because the process
        may have ended after the commit of the catalog and before the change of the rows.
        """
        held = os.fstat(self._file).st_size // ROW.itemsize
        if held < 1:
            return False
        self._map(held)
        header, seqs = self._all[0], self._all["seq"][1:].copy()
        self._count = int(np.count_nonzero(seqs))
        seqs = seqs[: self._count]
        self._runs = Runs(seqs)
        mine = (header["seq"], header["user"], header["created_at"]) == (_MAGIC, generation, RULES)
        return bool(mine and changes - 1 <= header["terms_at"] <= changes and (np.diff(seqs) > 0).all())

    def begin(self, seqs: npt.NDArray[np.int64]) -> None:
        """Replace all rows by empty rows with these ascending numbers. All other fields are 0. Raises `OSError`."""
        self._all, self._mapping = np.zeros(0, ROW), None
        os.ftruncate(self._file, 0)
        self._count, self._runs = 0, Runs()
        self._grow(len(seqs))
        self.add(seqs)

    def reserve(self, more: int) -> None:
        """Make room for `more` new rows. Raises `OSError` if the disk is full."""
        if self._count + more >= len(self._all):
            self._grow(self._count + more)

    def add(self, seqs: npt.NDArray[np.int64]) -> Places:
        """Add rows and return their places. The numbers must ascend, and be higher than all numbers in the file.

        Call `reserve` first.
        """
        start, self._count = self._count, self._count + len(seqs)
        self._runs.add(seqs)
        fresh = np.zeros(len(seqs), ROW)
        fresh["seq"] = seqs
        fresh["check"] = checks(fresh)
        self.rows[start:] = fresh
        return np.arange(start, self._count)

    def places(self, seqs: npt.NDArray[np.int64]) -> Places:
        """Return the places of the rows with these numbers. Numbers without a row are left out."""
        return self._runs.places(seqs)

    def stamp(self, generation: int, changes: int) -> None:
        """Record the generation and the catalog's counter of changes in the header, and sync the file."""
        header = self._all[0:1]
        header["seq"], header["user"], header["created_at"] = _MAGIC, generation, RULES
        self.follow(changes)
        self.sync()

    def follow(self, changes: int) -> None:
        """Record in the header that the rows include the catalog's changes up to this counter."""
        self._all["terms_at"][0] = changes

    def sync(self) -> None:
        """Flush the rows to the disk."""
        if self._mapping is not None:
            self._mapping.flush()

    def _grow(self, rows: int) -> None:
        whole = 1 + rows + rows // 8 + _MORE
        _allocate(self._file, whole * ROW.itemsize)
        self._map(whole)

    def _map(self, rows: int) -> None:
        self._mapping = mmap.mmap(self._file, rows * ROW.itemsize)
        self._all = np.frombuffer(self._mapping, ROW)

    def close(self) -> None:
        self._all, self._mapping = np.zeros(0, ROW), None
        os.close(self._file)


def checks(rows: Rows) -> npt.NDArray[np.uint32]:
    """Return a checksum of each row, uint32[n]. It reveals rows that a power failure has lost in part."""
    mixed = np.full(len(rows), 0x9E3779B97F4A7C15, np.uint64)
    for name in _CHECKED:
        part = rows[name].view(np.uint32) if name == "length" else rows[name]
        mixed = (mixed ^ part.astype(np.uint64)) * np.uint64(0x100000001B3)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(16)).astype(np.uint32)


def _allocate(file: int, size: int) -> None:
    """Allocate disk space. Without it, a write to the mapped file would kill the process if the disk is full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        held = os.fstat(file).st_size
        os.pwrite(file, bytes(max(0, size - held)), held)
