"""Chooses the segments to merge, and writes a segment in a thread.

When nothing is left to merge, each segment is more than twice as large as all smaller segments together, unless a
merged segment would exceed `MOST_ROWS`. So a search reads few segments. Merges start once a minute. Under a heavy
load, many segments of the same size are written in a minute. So a merge also starts when there are too many segments.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from schemas.errors import DataDirError
from tables.vectors.cells import Cells, NewCells
from tables.vectors.index import ReadVectors, Seqs, Vectors
from tables.vectors.segment_file import Lists, Stopped, write

log = logging.getLogger(__name__)

#: The maximum number of rows of a merged segment. With 512 dimensions, their vectors take two gigabytes.
MOST_ROWS: Final = 1 << 20
_RATIO: Final = 2
#: A segment with a larger share of removed rows is rewritten without them.
_GONE: Final = 0.25
_NICE: Final = 10


def to_merge(sizes: Sequence[tuple[int, int]], small: int) -> list[int]:
    """Return the segments to merge, by their places in `sizes`; an empty list if no merge is needed.

    `sizes` has for each segment the number of all rows, and the number of removed rows among them. If the result has
    only one place, that segment is to be rewritten without its removed rows. A segment is merged with all smaller
    ones unless it is more than `_RATIO` times as large as these together. For this comparison, the smaller ones count
    as at least `small` rows.
    """
    living = [rows - gone for rows, gone in sizes]
    wasted = [place for place, (rows, gone) in enumerate(sizes) if gone > _GONE * rows]
    order = sorted(range(len(sizes)), key=lambda place: (living[place], place))
    chosen, rows, weight = list[int](), 0, 0
    for place in order:
        if chosen and (living[place] > _RATIO * max(weight, small) or rows + living[place] > MOST_ROWS):
            if len(chosen) > 1:
                break
            chosen, rows = [], 0  # the chosen segment is not merged, because the next one is too large
        chosen.append(place)
        rows, weight = rows + living[place], weight + living[place]
    return sorted(chosen) if len(chosen) > 1 else wasted[:1]


class NewLists:
    """The rows of an index in memory as a source of a new segment. The index must not change during the write."""

    def __init__(self, index: NewCells) -> None:
        held = index.lists()
        self.cells = np.array([cell for cell, _, _ in held], np.int64)
        self.sizes: Seqs = np.array([len(seqs) for _, seqs, _ in held], np.int64)
        self._held = held

    def pieces(self, place: int) -> tuple[list[Vectors], list[Seqs]]:
        _, seqs, vectors = self._held[place]
        return [vectors], [seqs]


class StoredLists:
    """Vectors with these numbers, by cell, as a source of a segment. `read` takes their places from `first` on."""

    def __init__(self, seqs: Seqs, cells: Seqs, read: ReadVectors, first: int) -> None:
        self._order = np.argsort(cells, kind="stable")
        self._seqs, self._read, self._first = seqs, read, first
        self.cells, starts, sizes = np.unique(cells[self._order], return_index=True, return_counts=True)
        self.sizes: Seqs = sizes.astype(np.int64)
        self._starts = starts

    def pieces(self, place: int) -> tuple[list[Any], list[Any]]:
        start = self._starts[place]
        rows = self._order[start : start + self.sizes[place]]
        return [self._read(self._first + rows)], [self._seqs[rows]]


class Writing:
    """A segment that a thread is writing. When it is `done`, `error` is the reason of a failure, or None."""

    def __init__(
        self,
        path: Path,
        number: int,
        dimension: int,
        sources: Sequence[Cells],
        lists: Callable[[], Sequence[Lists]],
        guard: threading.Lock,
    ) -> None:
        self.path, self.sources = path, sources
        self.error: Exception | None = None
        #: The number of written rows; valid when it is `done`.
        self.rows = 0
        self._stop = threading.Event()
        work = number, dimension, lists, guard
        self._thread = threading.Thread(target=self._run, args=work, name=f"segment-{path.stem}", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> None:
        self._thread.join()

    def give_up(self) -> None:
        """Stop the thread that writes the segment, wait for its end, and remove the segment's file."""
        self._stop.set()
        self._thread.join()
        self.discard()

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _run(self, number: int, dimension: int, lists: Callable[[], Sequence[Lists]], guard: threading.Lock) -> None:
        _be_nice()
        try:
            self.rows = write(self.path, number, dimension, lists(), self._stop.is_set, guard)
        except Stopped:
            self.discard()
        except OSError as exc:
            self.error = exc
            self.discard()
        except Exception as exc:
            log.exception("a segment was not written")
            self.error = DataDirError(self.path, f"it was not written: {type(exc).__name__}")
            self.discard()


def _be_nice() -> None:
    """Lower the priority of this thread. Only Linux can do that for a single thread."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
