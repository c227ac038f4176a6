"""Values that a model has to be asked for: outside of the stream, a bounded number at a time.

An exchange waits here while its row and its session's row say that it is asked about, so nothing is lost with
this room: after a restart it is asked about again, and what was answered already is found in the shard.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from schemas.errors import ShardNotHere
from schemas.messages import Exchange
from streams.clock import now_ms
from streams.metrics import Metrics
from streams.shards import OwnedShards
from tables.shard import Shard

#: Askings of one exchange; after the last it counts as unimportant.
TRIES: Final = 3
#: A session that says nothing more triggers nothing: then this is the next trigger.
RETRY_SECONDS: Final = 30.0

Key = tuple[int, str, str, int]


class Rater(Protocol):
    """A model that judges."""

    model: str

    async def rate(self, user: str, assistant: str) -> int | None:
        """0-10; None where it did not say. Never raises."""

    def resumes_in(self) -> float:
        """Seconds until it may be asked again; 0 where it may be asked now."""


#: Called with the key and the value of an exchange, or None where it is not to be had.
Answered = Callable[[Key, int | None], Awaitable[None]]


@dataclass(slots=True)
class _Asked:
    exchange: Exchange
    first_try: asyncio.Future[None]
    tries: int = 0
    due: float | None = None
    """When to ask again (monotonic seconds); None while it is queued or being asked."""


class Ratings:
    """Asks, keeps what was answered in the shard, and says it to `answered`."""

    def __init__(
        self,
        rater: Rater,
        concurrency: int,
        shards: OwnedShards,
        metrics: Metrics,
        on_failure: Callable[[BaseException, str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rater, self._concurrency, self._shards = rater, concurrency, shards
        self._metrics, self._on_failure, self._monotonic = metrics, on_failure, monotonic
        self._asked: dict[Key, _Asked] = {}
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._workers: list[asyncio.Task[None]] = []

    def start(self, answered: Answered) -> None:
        """Begin to ask."""
        self._workers = [asyncio.create_task(self._work(answered)) for _ in range(self._concurrency)]

    async def stop(self) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    def ask(self, key: Key, exchange: Exchange) -> asyncio.Future[None] | None:
        """Ask for a value, or, where that has failed, ask again now.

        The future, of an exchange that is new here, is done when the first try is over: until then its value
        is out, and what it came from must not count as processed.
        """
        known = self._asked.get(key)
        if known is None:
            first_try = asyncio.get_running_loop().create_future()
            self._asked[key] = _Asked(exchange, first_try)
            self._queue.put_nowait(key)
            self._metrics.ratings_waiting.set(len(self._asked))
            return first_try
        if known.due is not None and not self._rater.resumes_in():
            self._ask_again(key, known)
        return None

    def tick(self) -> None:
        """Ask again about what has waited long enough."""
        now = self._monotonic()
        for key, asked in self._asked.items():
            if asked.due is not None and asked.due <= now:
                self._ask_again(key, asked)

    def forget(self) -> None:
        """Partitions have moved: what is still ours is asked about again."""
        for asked in self._asked.values():
            _settle(asked)
        self._asked.clear()

    def _ask_again(self, key: Key, asked: _Asked) -> None:
        asked.due = None
        self._queue.put_nowait(key)

    async def _work(self, answered: Answered) -> None:
        while True:
            key = await self._queue.get()
            asked = self._asked.get(key)
            if asked is None:
                continue
            try:
                await self._rate(key, asked, answered)
            except ShardNotHere:
                self._drop(key, asked)  # its partition's owner asks
            except Exception as exc:
                self._on_failure(exc, "a rating")
                return

    async def _rate(self, key: Key, asked: _Asked, answered: Answered) -> None:
        partition, user_id, session_id, _ = key
        identity = asked.exchange.memory_id(user_id, session_id)
        model = self._rater.model
        value = await self._shards.call(partition, Shard.rating, identity, model)
        if value is not None:
            self._metrics.ratings.labels("kept").inc()
        elif (pause := self._rater.resumes_in()) > 0:
            _settle(asked)
            asked.due = self._monotonic() + pause
            return
        else:
            value = await self._rater.rate(*asked.exchange.said())
            asked.tries += 1
            self._metrics.ratings.labels("failed" if value is None else "answered").inc()
            if value is not None:
                await self._shards.call(partition, Shard.keep_rating, identity, model, value, now_ms())
            elif asked.tries < TRIES:
                _settle(asked)
                asked.due = self._monotonic() + max(RETRY_SECONDS, self._rater.resumes_in())
                return
        if self._asked.get(key) is asked:
            await answered(key, value)
        self._drop(key, asked)

    def _drop(self, key: Key, asked: _Asked) -> None:
        _settle(asked)
        if self._asked.get(key) is asked:
            del self._asked[key]
        self._metrics.ratings_waiting.set(len(self._asked))


def _settle(asked: _Asked) -> None:
    if not asked.first_try.done():
        asked.first_try.set_result(None)
