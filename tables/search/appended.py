"""An append-only file. It is written with `pwrite`, so that a full disk raises an error, and read through a mapping.

If the worker is killed, all written bytes stay. A power failure may lose any of them, because this module syncs
nothing. Bytes are not checked when they are read, so the caller must check them.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

#: Bytes of unused room after the data, as a hole in the file. When the room is used up, the file is mapped again.
_ROOM: Final = 16 * 1024 * 1024
_ZEROS: Final = bytes(64 * 1024)


class AppendedFile:
    """Bytes that are written once, at an offset that never changes. `size` is the next offset, a multiple of 8."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.size = 0
        self._bytes, self._mapped = memoryview(b""), np.empty(0, np.uint8)

    def begin(self, size: int) -> None:
        """Cut the file to `size` bytes, a multiple of 8, and map it."""
        self.size = size
        os.ftruncate(self._file, size)
        self._map()

    def append(self, data: bytes) -> int:
        """Write bytes at the end of the file, and return their offset. Raises `OSError`."""
        at, padded = self.size, len(data) + -len(data) % 8
        if at + padded > len(self._mapped):
            os.ftruncate(self._file, at + padded)
            self.size = at + padded
            self._map()
        _write(self._file, data, at)
        self.size = at + padded
        return at

    def read(self, at: int, length: int) -> memoryview:
        """Return `length` bytes from the offset `at`, or fewer at the end of the file.

        Use the result only until the next `append`.
        """
        return self._bytes[at : at + length]

    def erase(self, at: int, length: int) -> None:
        """Overwrite `length` bytes from the offset `at` with zeros."""
        for start in range(at, at + length, len(_ZEROS)):
            _write(self._file, _ZEROS[: min(len(_ZEROS), at + length - start)], start)

    @property
    def words(self) -> npt.NDArray[np.uint64]:
        """The mapped file, as little-endian words of 64 bits."""
        return self._mapped.view("<u8")

    def _map(self) -> None:
        os.ftruncate(self._file, self.size + _ROOM)
        mapped = mmap.mmap(self._file, self.size + _ROOM, access=mmap.ACCESS_READ)
        self._bytes, self._mapped = memoryview(mapped), np.frombuffer(mapped, np.uint8)

    def close(self) -> None:
        self._bytes, self._mapped = memoryview(b""), np.empty(0, np.uint8)
        os.ftruncate(self._file, self.size)
        os.close(self._file)


def _write(file: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while len(view):
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written
