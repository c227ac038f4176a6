"""The file of a shard's vectors: a head, and then slots with one vector each, all of the same dimension.

    file = VectorFile(folder, Head(shard, 1, 384))
    file.keep(held)                  # cut the file after `held` slots
    file.put(held, vectors)          # float32[n, d]; on the disk when it returns
    file.read(slots)                 # float32[n, d]

The head is one page: a magic string, the shard, the number of the file, and the dimension. Only little-endian float32
follow, so the file can be mapped as a matrix. For each slot, the catalog stores the memory and the vector's digest
(`digests`). So a reader detects a slot that the disk has lost, or that belongs to another state of the catalog.
"""

from __future__ import annotations

import os
import struct
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.errors import DataDirError
from tables.paths import shard_folders, sync_data, synced

Slots = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float32]
Digests = npt.NDArray[np.uint64]

HEAD_BYTES: Final = 4096
_HEAD: Final = struct.Struct("<8s16sQI")
_MARK: Final = b"SltF32_1"
_ZERO_SLOTS: Final = 256


class Head(NamedTuple):
    """The identity of a file of vectors: its shard, its number, and the dimension of its vectors."""

    shard: uuid.UUID
    number: int
    dimension: int


def path_of(folder: Path, number: int) -> Path:
    return folder / f"vectors-{number:d}.f32"


def recorded_dimensions(data_dir: Path) -> dict[int, list[int]]:
    """Return the dimensions of each shard's files of vectors, by partition. Shards without such a file are left out.

    The file with the lowest number comes first. The others are being made, for another model, or by a copy of the
    file. Only the files' heads are read, so another process may have the shards open. Empty and damaged files are
    left out. Raises `DataDirError` if files cannot be read.
    """
    found = {}
    for partition, folder in shard_folders(data_dir).items():
        try:
            heads = [head for path in folder.iterdir() if path.match("vectors-*.f32") and (head := _head_of(path))]
        except (FileNotFoundError, NotADirectoryError):  # another worker has removed the folder, or it is no shard's
            continue
        except OSError as exc:
            raise DataDirError(Path(exc.filename or folder), exc.strerror or str(exc)) from exc
        if heads:
            found[partition] = [head.dimension for head in sorted(heads, key=lambda head: head.number)]
    return found


def _head_of(path: Path) -> Head | None:
    """Return the head of a file of vectors; None if the file was removed, is empty or damaged. Raises `OSError`."""
    try:
        with path.open("rb") as file:
            mark, shard, number, dimension = _HEAD.unpack(file.read(_HEAD.size))
    except (FileNotFoundError, struct.error):
        return None
    return Head(uuid.UUID(bytes=shard), number, dimension) if mark == _MARK else None


def digests(vectors: Matrix) -> Digests:
    """Return a digest, uint64, of each vector of float32[n, d]. Different vectors almost never have the same digest.

    A vector of zeros has the digest 0.
    """
    words = np.ascontiguousarray(vectors, "<f4").view("<u4").astype(np.uint64)
    weights = np.arange(1, words.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    found: Digests = words @ weights
    return found


class VectorFile:
    """The opened file of a shard's vectors. It is created if it is missing.

    Raises `DataDirError` if the file belongs to another catalog, or the disk fails.
    """

    def __init__(self, folder: Path, head: Head) -> None:
        self.path, self.head = path_of(folder, head.number), head
        self._width = 4 * head.dimension
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as exc:
            raise DataDirError(self.path, exc.strerror or str(exc)) from exc
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        head = _HEAD.pack(_MARK, self.head.shard.bytes, self.head.number, self.head.dimension)
        held = os.pread(self._file, _HEAD.size, 0)
        if held == head:
            return
        if held.strip(b"\0"):
            raise DataDirError(
                self.path, "it holds the vectors of another catalog: put back the file of this catalog"
            )
        with self._translated():
            os.ftruncate(self._file, HEAD_BYTES)
            _write(self._file, head, 0)
            os.fsync(self._file)
            synced(self.path.parent)

    @property
    def slots(self) -> int:
        """The number of slots in the file."""
        return max(0, os.fstat(self._file).st_size - HEAD_BYTES) // self._width

    def keep(self, slots: int) -> None:
        """Resize the file to this number of slots: cut off further slots, or add slots of zeros."""
        with self._translated():
            if self.slots != slots:
                os.ftruncate(self._file, HEAD_BYTES + slots * self._width)

    def put(self, first: int, vectors: Matrix) -> None:
        """Write vectors, float32[n, d], into the slots from `first` on. They are on the disk when the method ends.

        Raises ValueError if the dimension differs.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.head.dimension:
            raise ValueError(f"vectors of shape {vectors.shape} do not fit dimension {self.head.dimension}")
        with self._translated():
            _write(self._file, np.ascontiguousarray(vectors, "<f4").data, HEAD_BYTES + first * self._width)
            sync_data(self._file)

    def read(self, slots: Slots) -> Matrix:
        """Return the vectors in these slots, float32[n, d], in the order of `slots`; zeros for slots past the end."""
        return self.reader()(slots)

    def reader(self) -> Callable[[Slots], Matrix]:
        """Return a function like `read` that maps the file once. It returns zeros for slots that are added later."""
        dimension, held = self.head.dimension, self.slots
        empty = np.empty((0, dimension), np.float32)
        mapped = np.memmap(self.path, "<f4", "r", HEAD_BYTES, (held, dimension)).view(np.ndarray) if held else empty

        def read(slots: Slots) -> Matrix:
            inside = slots < held
            if inside.all():
                return mapped[slots]
            found = np.zeros((len(slots), dimension), np.float32)
            found[inside] = mapped[slots[inside]]
            return found

        return read

    def wipe(self, slots: Slots) -> None:
        """Overwrite the vectors in these slots with zeros."""
        if not len(slots):
            return
        slots = np.sort(slots)
        runs = np.split(slots, np.flatnonzero(np.diff(slots) > 1) + 1)
        with self._translated():
            for run in runs:
                for start in range(0, len(run), _ZERO_SLOTS):
                    zeros = bytes(self._width * min(_ZERO_SLOTS, len(run) - start))
                    _write(self._file, zeros, HEAD_BYTES + (int(run[0]) + start) * self._width)

    def sync(self) -> None:
        """Sync the file's data to the disk."""
        with self._translated():
            sync_data(self._file)

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def remove(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise DataDirError(self.path, f"vectors cannot be written: {exc.strerror or exc}") from exc


def _write(file: int, data: bytes | memoryview, at: int) -> None:
    view = memoryview(data).cast("B")
    while len(view):
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written
