"""Rows of one width in a mapped file, by number: what ranking asks of every memory, and where the rest of it lies.

Rows are in the order of their numbers; new ones have higher numbers and go to the end. Most numbers follow each
other, so little is held in memory to find one (`tables/runs.py`). The first row is the header: its `seq` is a mark,
`user` the generation, `created_at` the rules by which terms are taken, `terms_at` how often the catalog was changed.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tables.runs import Places, Runs
from tables.search.tokens import RULES

Rows = npt.NDArray[np.void]

#: Times are epoch ms. `user` and `session` are hashes; `speakers` is a hash of the speakers, 0 without any.
#: Offsets and lengths of `terms` (words) and `body` (bytes) are those in the two other files. `check` covers all
#: fields but those that an access changes.
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
    """A row as numbers."""

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
    """Rows one by one."""
    return [Row(*row) for row in rows.tolist()]


_OF_ACCESS: Final = {"importance", "last_accessed", "access_count", "check", "flags"}
_CHECKED: Final = tuple(name for name in ROW.names or () if name not in _OF_ACCESS)
HELD: Final = 1  #: its terms are in
BODY: Final = 2  #: its body is in, and as the catalog has it
PINNED: Final = 4
CURRENT: Final = 8
GONE: Final = 16

_MAGIC: Final = 0x31_73776F_52746C53  # "SltRows1"
_MORE: Final = 1024


class RowFile:
    """`rows` are those in use, as they lie in the file: writing into them is writing the file."""

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
        """The numbers of the rows, ascending, as they lie in the file."""
        seqs: npt.NDArray[np.int64] = self.rows["seq"]
        return seqs

    def load(self, generation: int, changes: int) -> bool:
        """Take what is in the file; whether it is of this generation, whole, and as it was after so many changes.

        Or one fewer: the process may have ended between the catalog's commit and the rows.
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
        """Rows of these numbers, ascending, and else of zeros, in place of all that was there. Raises `OSError`."""
        self._all, self._mapping = np.zeros(0, ROW), None
        os.ftruncate(self._file, 0)
        self._count, self._runs = 0, Runs()
        self._grow(len(seqs))
        self.add(seqs)

    def reserve(self, more: int) -> None:
        """Have room for so many more. Raises `OSError` where the disk has none."""
        if self._count + more >= len(self._all):
            self._grow(self._count + more)

    def add(self, seqs: npt.NDArray[np.int64]) -> Places:
        """Rows of numbers above all others, ascending, for which room was reserved; their places."""
        start, self._count = self._count, self._count + len(seqs)
        self._runs.add(seqs)
        fresh = np.zeros(len(seqs), ROW)
        fresh["seq"] = seqs
        fresh["check"] = checks(fresh)
        self.rows[start:] = fresh
        return np.arange(start, self._count)

    def places(self, seqs: npt.NDArray[np.int64]) -> Places:
        """Where the rows of these numbers are; those that have none are left out."""
        return self._runs.places(seqs)

    def stamp(self, generation: int, changes: int) -> None:
        """What is in the file belongs to this generation from now on; on the disk when it returns."""
        header = self._all[0:1]
        header["seq"], header["user"], header["created_at"] = _MAGIC, generation, RULES
        self.follow(changes)
        self.sync()

    def follow(self, changes: int) -> None:
        """What is in the file is as it is after so many changes of the catalog."""
        self._all["terms_at"][0] = changes

    def sync(self) -> None:
        """What was written into rows is on the disk when it returns."""
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
    """What `check` has to be: a file that was half on the disk when the power failed is seen by it."""
    mixed = np.full(len(rows), 0x9E3779B97F4A7C15, np.uint64)
    for name in _CHECKED:
        part = rows[name].view(np.uint32) if name == "length" else rows[name]
        mixed = (mixed ^ part.astype(np.uint64)) * np.uint64(0x100000001B3)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(16)).astype(np.uint32)


def _allocate(file: int, size: int) -> None:
    """A hole in a mapped file would be filled by a full disk with a signal that ends the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        held = os.fstat(file).st_size
        os.pwrite(file, bytes(max(0, size - held)), held)
