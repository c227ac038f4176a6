"""The recovery of each partition: progress and time left.

A shard that is opened, restored from a checkpoint or filled up from the log reports its progress here. So do the
windows while their changelogs are read. The answer to a request for a recovering partition uses this to say when the
client may retry.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Literal

from streams.runtime.memory_shares import in_units

Part = Literal["memories", "windows"]
Doing = Literal["opening", "restoring", "catching up"]
Unit = Literal["rows", "bytes", "records"]

UNITS: Final[Mapping[Doing, Unit]] = {"opening": "rows", "restoring": "bytes", "catching up": "records"}
#: The number of seconds over which the rate of the progress is measured. It is short enough to show a slowdown, and
#: long enough not to show a short pause.
RATE_SECONDS: Final = 10.0
#: The minimum number of seconds between two samples of the progress. Progress may be reported thousands of times a
#: second, and more samples would add no information.
NOTED_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Behind:
    """A part of a partition that is still being recovered, and its progress.

    `done` is the amount that is recovered, and `of_all` the total, both in `unit`. `of_all` is None until the total
    is known. `eta_seconds` is the time left at the rate of the last `RATE_SECONDS`, or None while there is no rate.
    """

    partition: int
    part: Part
    doing: Doing
    done: int
    of_all: int | None
    unit: Unit
    eta_seconds: float | None

    def __str__(self) -> str:
        return f"partition {self.partition}: {self.what()}"

    def what(self) -> str:
        """Return the progress as text, without the partition."""
        said = f"{self.part}: {self.doing}"
        if self.of_all is not None:
            done, of_all = (in_units(n) if self.unit == "bytes" else f"{n:,}" for n in (self.done, self.of_all))
            said += f", {done} of {of_all} {'' if self.unit == 'bytes' else self.unit}".rstrip()
        return said if self.eta_seconds is None else f"{said}, about {self.eta_seconds:.0f} s left"


@dataclass(eq=False, slots=True)
class _Way:
    """The progress of one part of a partition. `noted` has samples (clock time in seconds, `done`), oldest first."""

    doing: Doing
    done: int
    of_all: int | None
    noted: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, now: float, done: int) -> None:
        self.done = done
        if len(self.noted) < 2 or now - self.noted[-1][0] >= NOTED_SECONDS:
            self.noted.append((now, done))
        while len(self.noted) > 2 and self.noted[1][0] <= now - RATE_SECONDS:
            self.noted.popleft()

    def eta(self, now: float) -> float | None:
        since, before = self.noted[0]
        if self.of_all is None or self.done <= before or now <= since:
            return None
        return round((self.of_all - self.done) * (now - since) / (self.done - before), 1)


class RecoveryProgress:
    """The progress of all partitions of a worker. Thread-safe, because each shard is opened on its own thread.

    `clock` returns seconds. `windows` returns (number of records read, total number of records) of the windows'
    changelogs, by partition, while the changelogs are being read.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._ways: dict[tuple[int, Part], _Way] = {}
        self.windows: Callable[[], Mapping[int, tuple[int, int]]] = dict

    def begins(
        self, partition: int, part: Part, doing: Doing, done: int = 0, of_all: int | None = None
    ) -> Callable[[int, int], None]:
        """Record that a phase (`doing`) of a part's recovery begins.

        To report progress, call the returned function with (done, of all).
        """
        way = _Way(doing, done, of_all)
        way.note(self._clock(), done)
        with self._lock:
            self._ways[partition, part] = way

        def reached(done: int, of_all: int) -> None:
            with self._lock:
                way.of_all = of_all
                way.note(self._clock(), done)

        return reached

    def is_to_catch_up(self, partition: int) -> None:
        """Record that the partition's shard is catching up with the log.

        If the shard is not open yet, this changes nothing, because `OwnedShards` records it after the opening.
        """
        with self._lock:
            opening = (partition, "memories") in self._ways
        if not opening:
            self.begins(partition, "memories", "catching up")

    def is_back(self, partitions: Iterable[int], part: Part) -> None:
        """Record that this part, memories or windows, of the partitions is recovered."""
        with self._lock:
            for partition in partitions:
                self._ways.pop((partition, part), None)

    def keep(self, partitions: Collection[int]) -> None:
        """Drop the progress of all other partitions, because this worker does not own them."""
        with self._lock:
            self._ways = {key: way for key, way in self._ways.items() if key[0] in partitions}

    def all(self) -> list[Behind]:
        """Return the parts that are still being recovered, sorted by partition."""
        read = self.windows()
        with self._lock:
            now, behind = self._clock(), []
            for (partition, part), way in sorted(self._ways.items(), key=lambda item: item[0]):
                if part == "windows" and partition in read:
                    done, way.of_all = read[partition]
                    way.note(now, done)
                behind.append(
                    Behind(partition, part, way.doing, way.done, way.of_all, UNITS[way.doing], way.eta(now))
                )
        return behind

    def of(self, partition: int) -> list[Behind]:
        """Return the parts of this partition that are still being recovered."""
        if not any((partition, part) in self._ways for part in ("memories", "windows")):
            return []
        return [behind for behind in self.all() if behind.partition == partition]


def seconds_left(behind: Iterable[Behind]) -> float | None:
    """Return the estimated seconds until all parts are recovered, or None if no part has an estimate.

    The parts are recovered in parallel, so the longest of their estimates is returned.
    """
    return max((one.eta_seconds for one in behind if one.eta_seconds is not None), default=None)
