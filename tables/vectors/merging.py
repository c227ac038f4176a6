"""Which segments become one, and the thread that writes it.

Who writes much has many segments of one size for a while: they are brought together when there are too many. Once a
minute the order is stricter, and a search asks few: each is more than twice as large as all smaller ones together.
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

#: A segment with more rows is not merged with others: two gigabytes, of 512 dimensions.
MOST_ROWS: Final = 1 << 20
_RATIO: Final = 2
#: A segment of which more than this part is gone is rewritten, without it.
_GONE: Final = 0.25
_NICE: Final = 10


def to_merge(sizes: Sequence[tuple[int, int]], small: int) -> list[int]:
    """Which of the segments, by place, are to become one; none, where all is well. Of each: its rows, and the gone.

    Those with fewer rows than `small` count as if they had as many.
    """
    living = [rows - gone for rows, gone in sizes]
    wasted = [place for place, (rows, gone) in enumerate(sizes) if gone > _GONE * rows]
    order = sorted(range(len(sizes)), key=lambda place: (living[place], place))
    chosen, rows, weight = list[int](), 0, 0
    for place in order:
        if chosen and (living[place] > _RATIO * max(weight, small) or rows + living[place] > MOST_ROWS):
            if len(chosen) > 1:
                break
            chosen, rows = [], 0  # that one is small enough beside all larger ones
        chosen.append(place)
        rows, weight = rows + living[place], weight + living[place]
    return sorted(chosen) if len(chosen) > 1 else wasted[:1]


class Writing:
    """A segment in the making, on a thread of its own. Once it is `done`, `error` says why it could not be."""

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
        #: How many were written, once it is done.
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
        """Have it ended, and nothing left of it."""
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
    """Linux knows a priority for each thread."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
