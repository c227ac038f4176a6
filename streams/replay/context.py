"""The dependencies of a replay's intake and long-term agent.

They differ from the dependencies of a worker's agents: the clock follows the times of the records, long-term work
does not wait for a backlog of conversations, and `Kept` stores the records that a worker would send to the broker.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import orjson

from schemas.events import Promotion
from schemas.settings import Settings
from schemas.sources import sources_beside
from schemas.topics import Topics
from streams.kafka.commit.outbox import Outbox
from streams.replay.progress import KeptPromotion, ReplayProgress, WindowRow, message_name
from streams.runtime.backlog_gate import BacklogGate
from streams.runtime.clock import EventClock
from streams.telemetry.metrics import Metrics
from streams.telemetry.spans import NoSpans
from streams.worker.wiring.context import Context

#: Sends a promotion (value, key) to the broker. The returned future is done when the broker has acknowledged it.
Send = Callable[[bytes, bytes | None], Awaitable[asyncio.Future[Any]]]


def replay_context(
    settings: Settings,
    topics: Topics,
    kept: Kept,
    metrics: Metrics,
    on_failure: Callable[[BaseException, str], None],
) -> Context:
    """Build the context for the replay of one partition. The agents' records go to `kept`, not to the broker."""
    outbox = Outbox()
    outbox.connect(kept)
    return Context(
        settings=settings,
        topics=topics,
        metrics=metrics,
        clock=EventClock(),
        outbox=outbox,
        gate=BacklogGate(lambda: 0, 0.0),
        on_failure=on_failure,
        spans=NoSpans(),
    )


class _Batch:
    """A batch that replaces a producer's batch. `Outbox` appends rows to it."""

    def __init__(self) -> None:
        self.rows: list[tuple[bytes, bytes | None]] = []

    def append(self, *, key: bytes, value: bytes | None, timestamp: int | None) -> bool:
        self.rows.append((key, value))
        return True

    def close(self) -> None:
        """Do nothing, because the batch is not sent to a broker."""


class Kept:
    """Replaces the agents' producer: stores window rows and missing promotions until `taken` returns them.

    Missing promotions are promotions that the log lacks. If `send` is given, they are sent to the broker instead.
    While `silent` is true, promotions are ignored, because they belong to messages before the replayed range.
    """

    def __init__(self, long_term: str, progress: ReplayProgress, send: Send | None) -> None:
        self._long_term, self._progress, self._send = long_term, progress, send
        self._rows: list[WindowRow] = []
        self._found: list[KeptPromotion] = []
        self.silent = False
        self.counts: defaultdict[str, int] = defaultdict(int, {"found": 0, "in_log": 0, "forgotten": 0})

    def taken(self) -> tuple[list[WindowRow], list[KeptPromotion]]:
        """Return the window rows and the promotions that were stored since the last call of this method."""
        taken = self._rows, self._found
        self._rows, self._found = [], []
        return taken

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int | None = None,
        *,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> asyncio.Future[Any]:
        if topic == self._long_term and not self.silent:
            assert value is not None
            promotion = Promotion.model_validate(orjson.loads(value))
            if sources := sources_beside(headers):  # `KeptPromotion` stores no headers, so put them into the value
                promotion = promotion.model_copy(update={"sources": sources})
                value = promotion.model_dump_json().encode()
            if self._is_missing(promotion):
                if self._send is not None:
                    return await self._send(value, key)
                self._found.append(KeptPromotion(promotion.event_id, promotion.timestamp, key, value))
        return _taken()

    def create_batch(self) -> _Batch:
        return _Batch()

    async def send_batch(self, batch: _Batch, topic: str, *, partition: int) -> asyncio.Future[Any]:
        self._rows.extend(WindowRow(topic, key, value) for key, value in batch.rows)
        return _taken()

    def _is_missing(self, promotion: Promotion) -> bool:
        """Return True if the promotion has a message of the replayed range, is not in the log, and was not forgotten.

        For each promotion that has a message of the replayed range, the result is counted in `counts`.
        """
        user, session = promotion.user_id, promotion.session_id
        if all(self._progress.earlier(message_name(user, session, one)) for one in promotion.message_ids):
            return False
        if self._progress.in_log(promotion.event_id):
            what = "in_log"
        elif self._progress.forgotten(user, promotion.memory_id, promotion.started_at):
            what = "forgotten"
        else:
            what = "found"
        self.counts[what] += 1
        return what == "found"


class _Taken(NamedTuple):
    """Replaces a broker's acknowledgement of a record. Its `offset` is -1, because the record is not sent."""

    offset: int = -1


def _taken() -> asyncio.Future[Any]:
    taken: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    taken.set_result(_Taken())
    return taken
