"""The file of a sealed segment: a FAISS inverted file with a list for each cell, followed by tables.

    write(path, 7, 384, [rows_of_an_index, rows_of_a_segment])
    layout = read_layout(path)           # None if the file is incomplete

FAISS maps the inverted file and does not read the tables. The rows of a cell are contiguous: first their vectors,
then their numbers. The tables have the cells, the numbers of all rows in ascending order, the place of each number's
row, and a bit for each number, which is set if the row is removed. After the file is written, only these bits and the
bytes of removed rows change.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from tables.vectors.cells import empty_lists, faiss
from tables.vectors.index import Seqs

_FOOT: Final = struct.Struct("<8sQQQIIII")
_MARK: Final = b"SltSeg_1"
#: Byte offsets in a serialized empty FAISS index: the number of vectors is at the first, the number of lists at the
#: second.
_TOTAL_AT: Final = 8
_LISTS_AT: Final = 37
#: One write takes at most `_BUFFERS` buffers (the system allows 1,024), and about `_BYTES` bytes.
_BUFFERS: Final = 512
_BYTES: Final = 1 << 20


class Layout(NamedTuple):
    """The number and the dimension of a segment, and the offsets of the parts of its file, in bytes.

    `starts` has for each list the number of rows before it; the last entry is the number of all rows.
    """

    number: int
    dimension: int
    cells: Seqs
    starts: Seqs
    data_at: int
    seqs_at: int
    places_at: int
    gone_at: int
    bytes: int

    @property
    def rows(self) -> int:
        return int(self.starts[-1])

    def vector_at(self, place: int, row: int) -> int:
        """Return the offset in bytes of a row's vector. The row must be in the list `place`."""
        start = int(self.starts[place])
        return self.data_at + start * (4 * self.dimension + 8) + (row - start) * 4 * self.dimension

    def number_at(self, place: int, row: int) -> int:
        """Return the offset in bytes of a row's memory number. The row must be in the list `place`."""
        start, end = int(self.starts[place]), int(self.starts[place + 1])
        return self.data_at + start * 8 + end * 4 * self.dimension + (row - start) * 8


class Lists(Protocol):
    """Source rows for a new segment. `cells` ascend. `sizes` counts the rows of each cell that are not removed."""

    cells: Seqs
    sizes: Seqs

    def pieces(self, place: int) -> tuple[list[Any], list[Any]]:
        """Return the vectors and the memory numbers of the cell `cells[place]`, as buffers, without removed rows."""


class Stopped(Exception):
    """The caller of `write` has stopped the writing of a segment."""


def write(
    path: Path,
    number: int,
    dimension: int,
    sources: Sequence[Lists],
    stop: Callable[[], bool],
    guard: threading.Lock,
) -> int:
    """Write the rows of all sources, cell by cell, sync the file, and return the number of rows.

    `guard` is locked while rows are copied; code that overwrites rows of the sources must lock it, too. `write` takes
    28 bytes of memory for each row. Raises OSError, and `Stopped` if `stop` returns True. After an error, a partial
    file is left.
    """
    cells = np.unique(np.concatenate([source.cells for source in sources]))
    sizes = np.zeros(len(cells), np.int64)
    for source in sources:
        sizes[np.searchsorted(cells, source.cells)] += source.sizes
    cells, sizes = cells[sizes > 0], sizes[sizes > 0]
    asked = [_places(source.cells, cells) for source in sources]
    numbers, head = list[bytes](), _head(dimension, sizes)
    with path.open("wb", buffering=0) as file:
        _write(file.fileno(), [head])
        place = 0
        while place < len(cells):
            if stop():
                raise Stopped
            with guard:
                buffers, size = list[Any](), 0
                while place < len(cells) and len(buffers) < _BUFFERS and size < _BYTES:
                    found = [
                        source.pieces(at[place]) for source, at in zip(sources, asked, strict=True) if at[place] >= 0
                    ]
                    ids = [piece for _, some in found for piece in some]
                    buffers += [piece for some, _ in found for piece in some] + ids
                    numbers += [bytes(piece) for piece in ids]
                    size += int(sizes[place]) * 4 * dimension
                    place += 1
                _write(file.fileno(), buffers)
        _write(file.fileno(), _tables(number, dimension, cells, head, np.frombuffer(b"".join(numbers), np.int64)))
        os.fsync(file.fileno())
    return int(sizes.sum())


def _places(cells: Seqs, wanted: Seqs) -> list[int]:
    """Return the index in `cells` of each wanted cell; -1 if `cells` does not have it."""
    if not len(cells):
        return [-1] * len(wanted)
    places = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
    found: list[int] = np.where(cells[places] == wanted, places, -1).tolist()
    return found


def _head(dimension: int, sizes: Seqs) -> bytes:
    """Return the start of the file in FAISS's format: the index, the type of its lists and their sizes."""
    empty = faiss.serialize_index(empty_lists(dimension, 1)).tobytes()
    head = bytearray(empty[: empty.index(b"ilar")])
    struct.pack_into("<q", head, _TOTAL_AT, int(sizes.sum()))
    struct.pack_into("<Q", head, _LISTS_AT, len(sizes))
    lists = struct.pack("<4sQQ4sQ", b"ilar", len(sizes), 4 * dimension, b"full", len(sizes))
    return bytes(head) + lists + sizes.astype("<u8").tobytes()


def _tables(number: int, dimension: int, cells: Seqs, head: bytes, numbers: Seqs) -> list[bytes]:
    """Return the tables and the footer of a segment's file.

    A row that was removed while the rows were copied has the number -1 and a set bit.
    """
    places = np.argsort(numbers, kind="stable")
    tables = numbers[places].astype("<i8").tobytes(), places.astype("<i4").tobytes()
    bits = np.packbits(numbers[places] < 0, bitorder="little").tobytes()
    named = cells.astype("<i4").tobytes()
    foot = (_MARK, number, len(numbers), len(cells), dimension)
    checks = zlib.crc32(named, zlib.crc32(head)), zlib.crc32(tables[1], zlib.crc32(tables[0]))
    packed = _FOOT.pack(*foot, *checks, 0)
    sealed = _FOOT.pack(*foot, *checks, zlib.crc32(packed))
    data_ends = len(head) + len(numbers) * (4 * dimension + 8)
    return [bytes(-data_ends % 8), *tables, named, bits, sealed]


def read_layout(path: Path) -> Layout | None:
    """Return the layout of a segment's file; None if it is too short or a table is damaged. Raises OSError.

    All of the file except the rows is read, which is about twelve bytes for each row.
    """
    with path.open("rb") as file:
        length = os.fstat(file.fileno()).st_size
        file.seek(max(0, length - _FOOT.size))
        if len(foot := file.read()) < _FOOT.size:
            return None
        *said, check = _FOOT.unpack(foot)
        mark, number, rows, lists, dimension, head_check, tables_check = said
        if mark != _MARK or zlib.crc32(_FOOT.pack(*said, 0)) != check:
            return None
        data_at = len(_head(dimension, np.empty(0, np.int64))) + 8 * lists
        data_ends = data_at + rows * (4 * dimension + 8)
        seqs_at = data_ends + -data_ends % 8
        cells_at = seqs_at + 12 * rows
        gone_at = cells_at + 4 * lists
        if length != gone_at + (rows + 7) // 8 + _FOOT.size:
            return None
        file.seek(0)
        head = file.read(data_at)
        file.seek(seqs_at)
        check, left = 0, 12 * rows
        while left and (part := file.read(min(left, _BYTES))):
            check, left = zlib.crc32(part, check), left - len(part)
        named = file.read(4 * lists)
    if check != tables_check or zlib.crc32(named, zlib.crc32(head)) != head_check:
        return None
    sizes = np.frombuffer(head[data_at - 8 * lists :], "<u8").astype(np.int64)
    return Layout(
        number=number,
        dimension=dimension,
        cells=np.frombuffer(named, "<i4").astype(np.int64),
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        data_at=data_at,
        seqs_at=seqs_at,
        places_at=seqs_at + 8 * rows,
        gone_at=gone_at,
        bytes=length,
    )


def _write(file: int, buffers: Sequence[Any]) -> None:
    """Write all buffers. Other threads of Python can run during the writes."""
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    bounds = [*range(0, len(views), _BUFFERS), len(views)]
    for start, end in pairwise(bounds):
        left = [view for view in views[start:end] if len(view)]
        while left:
            written = os.writev(file, left)
            while left and written >= len(left[0]):
                written -= len(left.pop(0))
            if left:
                left[0] = left[0][written:]
