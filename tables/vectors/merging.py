"""The choice of segments to merge, and the thread that writes a segment.

Under a heavy load, segments of one size pile up and are merged when there are too many. Once a minute the rule is
stricter, so a search reads few segments: each is more than twice as large as all smaller ones together.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from schemas.errors import DataDirError
from tables.vectors.index import Cells
from tables.vectors.segment_file import Lists, Stopped, write

log = logging.getLogger(__name__)

#: The most rows of a merged segment: two gigabytes at 512 dimensions.
MOST_ROWS: Final = 1 << 20
_RATIO: Final = 2
#: A segment with a larger share of removed rows is rewritten without them.
_GONE: Final = 0.25
_NICE: Final = 10


def to_merge(sizes: Sequence[tuple[int, int]], small: int) -> list[int]:
    """Choose the segments to merge, by place; empty if none. `sizes`: each segment's rows, and how many are removed.

    Smaller segments together count as at least `small` rows. One place alone: rewrite this segment.
    """
    living = [rows - gone for rows, gone in sizes]
    wasted = [place for place, (rows, gone) in enumerate(sizes) if gone > _GONE * rows]
    order = sorted(range(len(sizes)), key=lambda place: (living[place], place))
    chosen, rows, weight = list[int](), 0, 0
    for place in order:
        if chosen and (living[place] > _RATIO * max(weight, small) or rows + living[place] > MOST_ROWS):
            if len(chosen) > 1:
                break
            chosen, rows = [], 0  # the one chosen stays: the next is too large to merge with it
        chosen.append(place)
        rows, weight = rows + living[place], weight + living[place]
    return sorted(chosen) if len(chosen) > 1 else wasted[:1]


class Writing:
    """A segment that a thread is writing. Once it is `done`, `error` says why it failed, if it did."""

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
        #: How many rows were written, once it is done.
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
        """Stop the thread, wait for it, and remove the file."""
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
    """Lower the thread's priority, which only Linux can do."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
