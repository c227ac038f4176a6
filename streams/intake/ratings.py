"""Requests ratings of exchanges from a model, concurrently with the stream of records.

While a rating is pending, the exchange's row is kept, and the row of its session says that the rating is pending. So
a restart, which loses the queue of requests, loses no rating: it is requested again, or read from the shard if the
model had already given it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from schemas.errors import ShardNotHere
from schemas.exchanges import Exchange
from schemas.times import now_ms
from streams.runtime.backoff import Backoff
from streams.runtime.ending import ended
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics

#: Delays between two tries to get a rating (seconds). New records of the exchange's session can cause an earlier try.
BACKOFF: Final = Backoff(first=30.0, longest=3600.0)
#: Seconds for which a rating is retried. After that, the exchange is decided without a rating, which counts as 0. A
#: restart of the worker begins a new period.
PATIENCE_SECONDS: Final = 86_400.0

#: Priorities in the queue of requests. Offset commits wait for first tries, so first tries go before retries.
_FIRST, _AGAIN = 0, 1

Key = tuple[int, str, str, int]


class Rater(Protocol):
    """A model that rates exchanges."""

    model: str

    async def rate(self, user: str, assistant: str) -> int | None:
        """Return a rating, 0-10; None if the model gave none. Never raises."""

    def resumes_in(self) -> float:
        """Return the seconds until the model may be asked again; 0 if it may be asked now."""


#: Callback with the key and the rating of an exchange. The rating is None if the model gave none.
Answered = Callable[[Key, int | None], Awaitable[None]]


@dataclass(slots=True)
class _PendingRating:
    exchange: Exchange
    first_try: asyncio.Future[None]
    since: float
    """The time of the first request for the rating (monotonic seconds)."""
    tries: int = 0
    due: float | None = None
    """The time of the next try (monotonic seconds); None while the request is queued or running."""


class Ratings:
    """Asks a model for ratings, stores them in the shard, and passes them to the callback given to `start`.

    If the model does not answer, it is asked again, at growing intervals, for `patience` seconds. The model sees only
    the part of an exchange that `heard` returns.
    """

    def __init__(
        self,
        rater: Rater,
        concurrency: int,
        shards: OwnedShards,
        metrics: Metrics,
        on_failure: Callable[[BaseException, str], None],
        monotonic: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE_SECONDS,
        heard: Callable[[Exchange], Exchange] = lambda exchange: exchange,
    ) -> None:
        self._patience, self._heard = patience, heard
        self._rater, self._concurrency, self._shards = rater, concurrency, shards
        self._metrics, self._on_failure, self._monotonic = metrics, on_failure, monotonic
        self._asked: dict[Key, _PendingRating] = {}
        self._due: list[tuple[float, Key]] = []
        self._queue: asyncio.PriorityQueue[tuple[int, int, Key]] = asyncio.PriorityQueue()
        self._queued = itertools.count()
        self._workers: list[asyncio.Task[None]] = []

    def start(self, answered: Answered) -> None:
        """Start the workers."""
        self._workers = [asyncio.create_task(self._work(answered)) for _ in range(self._concurrency)]

    async def stop(self) -> None:
        await ended(self._workers)

    def ask(self, key: Key, exchange: Exchange) -> asyncio.Future[None] | None:
        """Request a rating of an exchange. If its last try failed, retry now, unless the rater pauses.

        Return a future if the rating was not requested before, else None. The future is done when the first try is
        over. Until then, the records of the exchange must not count as processed.
        """
        known = self._asked.get(key)
        if known is None:
            first_try = asyncio.get_running_loop().create_future()
            self._asked[key] = _PendingRating(exchange, first_try, self._monotonic())
            self._queue.put_nowait((_FIRST, next(self._queued), key))
            self._metrics.ratings_waiting.set(len(self._asked))
            return first_try
        if known.due is not None and not self._rater.resumes_in():
            self._ask_again(key, known)
        return None

    def tick(self) -> None:
        """Retry the ratings whose delay is over."""
        now = self._monotonic()
        while self._due and self._due[0][0] <= now:
            due, key = heapq.heappop(self._due)
            asked = self._asked.get(key)
            if asked is not None and asked.due == due:  # if not equal, the rating was retried in the meantime
                self._ask_again(key, asked)

    def forget(self) -> None:
        """Drop all requests for ratings. Call this after partitions have moved between workers.

        The caller must then request the pending ratings of the partitions that this worker owns.
        """
        for asked in self._asked.values():
            _settle(asked)
        self._asked.clear()
        self._due.clear()

    def _ask_again(self, key: Key, asked: _PendingRating) -> None:
        asked.due = None
        self._queue.put_nowait((_AGAIN, next(self._queued), key))

    async def _work(self, answered: Answered) -> None:
        while True:
            _, _, key = await self._queue.get()
            asked = self._asked.get(key)
            if asked is None:
                continue
            try:
                await self._rate(key, asked, answered)
            except ShardNotHere:
                self._drop(key, asked)  # the partition's new owner requests the rating
            except Exception as exc:
                self._on_failure(exc, "a rating")
                return

    async def _rate(self, key: Key, asked: _PendingRating, answered: Answered) -> None:
        partition, user_id, session_id, _ = key
        identity = asked.exchange.memory_id(user_id, session_id)
        model = self._rater.model
        rating = await self._shards.call(partition, lambda shard: shard.ratings.of(identity, model))
        if rating is not None:
            self._metrics.ratings.labels("kept").inc()
        elif (pause := self._rater.resumes_in()) > 0:
            self._wait(key, asked, pause)
            return
        else:
            rating = await self._rater.rate(*self._heard(asked.exchange).said())
            asked.tries += 1
            self._metrics.ratings.labels("failed" if rating is None else "answered").inc()
            if rating is not None:
                await self._shards.call(partition, lambda shard: shard.ratings.put(identity, model, rating, now_ms()))
            elif self._monotonic() - asked.since < self._patience:
                self._wait(key, asked, max(BACKOFF.after(asked.tries), self._rater.resumes_in()))
                return
        if self._asked.get(key) is asked:
            await answered(key, rating)
        self._drop(key, asked)

    def _wait(self, key: Key, asked: _PendingRating, seconds: float) -> None:
        """Schedule a retry after `seconds`. The exchange's records may count as processed before the retry."""
        _settle(asked)
        if self._asked.get(key) is asked:
            asked.due = self._monotonic() + seconds
            heapq.heappush(self._due, (asked.due, key))

    def _drop(self, key: Key, asked: _PendingRating) -> None:
        _settle(asked)
        if self._asked.get(key) is asked:
            del self._asked[key]
        self._metrics.ratings_waiting.set(len(self._asked))


def _settle(asked: _PendingRating) -> None:
    if not asked.first_try.done():
        asked.first_try.set_result(None)
