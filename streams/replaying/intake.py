"""The conversations of one partition once more: by the workers' own rules, beside Faust, at the speed of reading."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import orjson
from aiokafka.errors import KafkaError

from schemas.errors import SiltstoneError
from schemas.events import Promotion
from schemas.settings import MemorySettings
from schemas.topics import EXCHANGES, SESSIONS, Topics
from streams.agents.short_term import ShortTermAgent, session_record
from streams.clock import EventClock
from streams.dead_letters import DeadLetters
from streams.event_log import EventLog
from streams.hotpath import Outbox
from streams.inbox import Inbox
from streams.jobs.idle_tracker import IdleTracker
from streams.jobs.ratings import Rater, Ratings
from streams.metrics import Metrics, labelled
from streams.replaying.plan import OffsetRange
from streams.replaying.progress import KeptPromotion, ReplayProgress, WindowRow, message_name
from streams.rerouting import Rerouting
from streams.rules.promotion import Promoter
from streams.rules.session import SessionRules
from streams.shards import OwnedShards
from tables.windows.short_term import ShortTermStore

#: Between two savings; what was read since the last one is read again after a kill.
SAVE_SECONDS = 2.0
#: For how long a model that does not answer is asked about an exchange: somebody waits for the end.
PATIENCE_SECONDS = 600.0
#: How often answers of a model are looked for at the end.
TICK_SECONDS = 0.1

#: Sends a promotion to the broker; the future is done when it has it.
Send = Callable[[bytes, bytes | None], Awaitable[asyncio.Future[Any]]]


class RatedBy(NamedTuple):
    """A model that rates, how many may be asked at a time, and the shards that keep what it says."""

    rater: Rater
    concurrency: int
    shards: OwnedShards


class Intake:
    """Windows of one partition, advanced by `take`, and the promotions that are not in the log.

    Those are kept with the progress; with `send` they are sent as well. Dead letters and misrouted records are
    not: the worker that reads the same records sends them.
    """

    def __init__(
        self,
        partition: int,
        span: OffsetRange,
        progress: ReplayProgress,
        *,
        memory: MemorySettings,
        promoter: Promoter,
        topics: Topics,
        partitions: int,
        rated_by: RatedBy | None,
        send: Send | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._partition, self._span, self._progress, self._memory = partition, span, progress, memory
        self._monotonic, self._saved_at = monotonic, monotonic()
        self._newest_record = 0.0
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._counted: dict[str, int] = {}
        self._kept = Kept(topics.long_term, progress, send)
        self._store, self._metrics, self._outbox = ShortTermStore(), Metrics(), Outbox()
        self._not_allowed: list[KafkaError] = []
        self._outbox.on_not_allowed = self._not_allowed.append
        self._outbox.connect(self._kept)
        self._outbox.add_table(EXCHANGES, self._store.exchanges)
        self._outbox.add_table(SESSIONS, self._store.sessions)
        self._ratings = (
            Ratings(
                rated_by.rater,
                rated_by.concurrency,
                rated_by.shards,
                self._metrics,
                self._fail,
                patience=PATIENCE_SECONDS,
            )
            if rated_by
            else None
        )
        self._agent = ShortTermAgent(
            store=self._store,
            rules=SessionRules(memory, promoter),
            event_log=EventLog(self._outbox, topics),
            inbox=Inbox(
                session_record,
                DeadLetters(self._outbox, topics.dead_letters, self._metrics),
                Rerouting(self._outbox, self._metrics, partitions),
            ),
            metrics=self._metrics,
            clock=EventClock(),
            ratings=self._ratings,
        )
        # Sessions that are over are dropped by the records' times, as a worker drops them by its clock.
        self._agent.idle = IdleTracker(lambda: self._newest_record)

    async def begin(self) -> int:
        """Take up the windows where the progress left them; the offset to read from."""
        for name, rows in ((EXCHANGES, self._store.exchanges), (SESSIONS, self._store.sessions)):
            rows.restore(self._partition, self._progress.rows(name))
        self._newest_record = self._progress.noted.get("newest_record", 0) / 1000
        offset = self._progress.noted.get("offset", self._span.before)
        self._kept.silent = offset < self._span.start
        if self._ratings is not None:
            self._ratings.start(self._agent.answered)
        await self._agent.recovered()
        return offset

    async def take(self, records: Sequence[Any], position: int) -> None:
        """These records, in the order of the log; `position` is the offset after them and after those left out."""
        earlier = [record for record in records if record.offset < self._span.start]
        if earlier:
            await self._handle(earlier)
        if self._kept.silent and position >= self._span.start:
            await self._arrive()
        if ours := records[len(earlier) :]:
            await self._handle(ours)
        if self._monotonic() - self._saved_at >= SAVE_SECONDS:
            await self._save(position)

    async def end(self) -> None:
        """Wait for what the model is still asked, and keep all. Exchanges that nothing decided on stay undecided."""
        if self._ratings is not None:
            while any(True for _ in self._store.asked()):
                self._ratings.tick()
                await self._unless_failed(asyncio.sleep(TICK_SECONDS))
        await self._save(self._span.end)

    async def close(self) -> None:
        if self._ratings is not None:
            await self._ratings.stop()
        self._failed.cancel()

    async def _handle(self, records: Sequence[Any]) -> None:
        self._newest_record = max(self._newest_record, records[-1].timestamp / 1000)
        asked = await self._agent.handle(self._partition, records)
        if asked is not None:
            await self._unless_failed(asked)

    async def _arrive(self) -> None:
        """The start is reached: what is in the windows came before it."""
        names = [
            message_name(session.user_id, session.session_id, message_id)
            for partition, session in self._store.all_sessions()
            for message_id in self._store.message_ids(partition, session)
        ]
        self._progress.said_earlier(names)
        self._kept.silent = False
        self._counted = self._counts()

    async def _save(self, offset: int) -> None:
        self._agent.forget_expired(self._memory)
        if not await self._outbox.flush():
            self._outbox.abandon()
            if self._not_allowed:
                raise self._not_allowed[0]
            raise SiltstoneError("the broker did not take what was promoted: look at it, then run the command again")
        counts = self._counts()
        if self._kept.silent:
            self._counted = counts
        grown = {name: count - self._counted.get(name, 0) for name, count in counts.items()}
        numbers = {name: self._progress.noted.get(name, 0) + more for name, more in grown.items()}
        numbers |= {"offset": offset, "newest_record": round(self._newest_record * 1000)}
        rows, found = self._kept.taken()
        self._progress.save(rows, found, numbers)
        self._counted, self._saved_at = counts, self._monotonic()

    def _counts(self) -> dict[str, int]:
        metrics = self._metrics
        return {
            "messages": labelled(metrics.messages).get((), 0),
            "exchanges": labelled(metrics.exchanges).get((), 0),
            "promoted": metrics.promoted(),
            "unusable": sum(labelled(metrics.dead_letters).values()),
            "misrouted": sum(labelled(metrics.rerouted).values()),
            **self._kept.counts,
        }

    def _fail(self, exc: BaseException, where: str) -> None:
        if not self._failed.done():
            self._failed.set_exception(SiltstoneError(f"{where} failed: {exc}"))

    async def _unless_failed(self, asked: Awaitable[Any]) -> None:
        """Wait; raises what made a rating fail, which would never answer."""
        waiting = asyncio.ensure_future(asked)
        try:
            await asyncio.wait((waiting, self._failed), return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done():
                self._failed.result()
            await waiting
        finally:
            waiting.cancel()


class _Batch:
    """What `Outbox` packs rows into."""

    def __init__(self) -> None:
        self.rows: list[tuple[bytes, bytes | None]] = []

    def append(self, *, key: bytes, value: bytes | None, timestamp: int | None) -> bool:
        self.rows.append((key, value))
        return True

    def close(self) -> None:
        """It is never sent."""


class Kept:
    """Stands where the agents' producer stands: windows' rows and promotions stay here until they are `taken`."""

    def __init__(self, long_term: str, progress: ReplayProgress, send: Send | None) -> None:
        self._long_term, self._progress, self._send = long_term, progress, send
        self._rows: list[WindowRow] = []
        self._found: list[KeptPromotion] = []
        self.silent = False
        self.counts: defaultdict[str, int] = defaultdict(int, {"found": 0, "in_log": 0, "forgotten": 0})

    def taken(self) -> tuple[list[WindowRow], list[KeptPromotion]]:
        """All since the last time."""
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
        """Whether it is in neither the log nor a tombstone, and not from before the start alone."""
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
    """What a broker answers, but that there is no log."""

    offset: int = -1


def _taken() -> asyncio.Future[Any]:
    taken: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    taken.set_result(_Taken())
    return taken
