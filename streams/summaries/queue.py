"""Queue of summary requests, by user and day, so that requests for the same day become one summary."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from schemas.summary_requests import Heading, Reason


class RequestBatch:
    """Records that were fetched together. When all of them are answered, `done` gets a result.

    Then the offset of the records may be committed. If `done` is cancelled, the offset is not committed, so this
    worker or another owner reads the records again.
    """

    def __init__(self, records: int) -> None:
        self._open = records
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answered(self) -> None:
        """Count one more answered record."""
        self._open -= 1
        if not self._open and not self.done.done():
            self.done.set_result(None)

    def fail(self, exc: BaseException) -> None:
        """Fail the batch: its offset is not committed, and the worker stops."""
        if not self.done.done():
            self.done.set_exception(exc)

    def leave(self) -> None:
        self.done.cancel()


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request: its heading, its record (`raw`), the number of its failed tries, and the batches that contain it.

    A request that was kept after a failure has no batch. A request that was delivered again while it was waiting has
    two batches.
    """

    heading: Heading
    raw: bytes
    tries: int = 0
    batches: list[RequestBatch] = field(default_factory=list)

    def answered(self) -> None:
        """Count the request as answered, or as stored for another try, in all batches that contain it."""
        batches, self.batches = self.batches, []
        for batch in batches:
            batch.answered()

    def leave(self) -> None:
        for batch in self.batches:
            batch.leave()


class Day(NamedTuple):
    """A day of a user for which a summary is requested, and the user's partition."""

    partition: int
    user_id: str
    day: date


class Group(NamedTuple):
    """Requests for one day, in order of arrival."""

    of: Day
    asked: tuple[PendingRequest, ...]

    @property
    def reason(self) -> Reason:
        """The most important reason of the requests: a person's request, else the end of the day, else the count."""
        reasons = {one.heading.reason for one in self.asked}
        return next(reason for reason in _FIRST if reason in reasons)

    def after(self, kept: Sequence[PendingRequest]) -> Group:
        """Return the group with the day's failed requests (`kept`) in front of its own requests.

        A failed request that was delivered again is not added twice, and keeps its number of tries.
        """
        tries = {one.heading.run_id: one.tries for one in kept}
        for one in self.asked:
            one.tries = tries.pop(one.heading.run_id, one.tries)
        return self._replace(asked=(*(one for one in kept if one.heading.run_id in tries), *self.asked))

    def only(self, asked: Iterable[PendingRequest]) -> Group:
        return self._replace(asked=tuple(asked))


_FIRST: tuple[Reason, ...] = ("manual", "day_end", "count")


class WaitingSummaries:
    """The waiting requests, in order of arrival. Days that a person has requested go before all other days.

    A request with the run id of a waiting request is not added again. `size` is the number of bytes of the waiting
    records.
    """

    def __init__(self) -> None:
        self._days: dict[Day, dict[object, PendingRequest]] = {}
        self._urgent: dict[Day, None] = {}
        self.size = 0

    def __len__(self) -> int:
        """The number of waiting days."""
        return len(self._days)

    @property
    def urgent(self) -> bool:
        """True if a request by a person is waiting."""
        return bool(self._urgent)

    def add(self, partition: int, heading: Heading, raw: bytes, batch: RequestBatch) -> None:
        day = Day(partition, heading.user_id, heading.day)
        of_day = self._days.setdefault(day, {})
        asked = of_day.get(heading.run_id)
        if asked is None:
            asked = of_day[heading.run_id] = PendingRequest(heading, raw)
            self.size += len(raw)
        asked.batches.append(batch)
        if heading.reason == "manual":
            self._urgent[day] = None

    def take(self, most: int) -> list[Group]:
        """Remove the next days from the queue, at most `most`, and return the groups of their requests."""
        taken: list[Group] = []
        while self._days and len(taken) < most:
            day = next(iter(self._urgent or self._days))
            self._urgent.pop(day, None)
            asked = tuple(self._days.pop(day).values())
            self.size -= sum(len(one.raw) for one in asked)
            taken.append(Group(day, asked))
        return taken

    def leave(self) -> None:
        """Drop all requests, because this worker or another one reads them again."""
        for group in self.take(len(self)):
            for one in group.asked:
                one.leave()
