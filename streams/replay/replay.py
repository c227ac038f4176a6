"""A replay: decide on the conversations again by today's rules, and build shards from the log and the new promotions.

    1. the log      read `long-term`, and note its promotions and the memories that were forgotten
    2. the windows  run `conversations` through a worker's intake again; a promotion that is not in the log, and was
                    not forgotten, is *found*
    3. the shards   apply the log in its order; apply each found promotion, sorted by time, before the first event of
                    the log that has the same time or a later one; apply the rest at the end

A backfill (`rebuild=False`) has no third step: found promotions are sent to `long-term`, and the workers apply them.

Embedding takes longer than everything else. So a partition's shard is built as soon as its own windows are done,
while the windows of other partitions are still running.

Intake, shards and the long-term agent are built as in a worker (`streams/worker/wiring/`), but without Faust. They
read the records up to the end offsets of the plan.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aiokafka.errors import KafkaError

from schemas.errors import BadRecord, ShardLocked
from schemas.events import Forget, ForgetUser, Promotion
from schemas.rights import Right
from schemas.settings import KafkaSettings, Settings
from schemas.topic_specs import MAX_RECORD_BYTES
from schemas.topics import Topics, key_of
from streams.forgetting.forgetters import Forgetters
from streams.kafka.clients.broker import translated
from streams.kafka.clients.log_reader import records_between
from streams.kafka.clients.producing import started_producer
from streams.kafka.inbox import readable
from streams.memory.agent import LongTermAgent, decode
from streams.memory.group_commit import EVENTS_A_TRANSACTION
from streams.replay.context import Kept, Send, replay_context
from streams.replay.intake import ReplayedIntake
from streams.replay.plan import EARLIEST, OffsetRange, Plan
from streams.replay.progress import KeptPromotion, ReplayProgress
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics, labelled
from streams.worker.wiring.chats import Chats, RatingChat
from streams.worker.wiring.intake import Intake, session_notes
from streams.worker.wiring.long_term import long_term_agent
from streams.worker.wiring.storage import Storage
from tables.database.inspection import catalogs
from tables.memories.shard import Shard
from tables.offline.carry_over import Rated, carry_over

Batches = AsyncGenerator[Sequence[Any], None]

#: The maximum number of partitions that are replayed at the same time. While one partition waits for the broker or
#: for embeddings, another partition continues.
SIDE_BY_SIDE = 4
#: The maximum number of records of a partition that are processed before the event loop can run other partitions. All
#: records of a fetch would block it for half a second.
RECORDS_AT_A_TIME = 1_000
#: The names of completed steps in a partition's progress.
LOOKED_THROUGH, HEARD, WRITTEN = "looked_through", "heard", "written"


class RecordProgress(Protocol):
    """Shows the number of finished records, and the number of all records."""

    def __call__(self, done: int, total: int, note: str = "") -> None: ...


#: Runs one step of a replay for a partition and its offsets, and passes each offset that it has reached to the
#: callback.
Step = Callable[[int, OffsetRange, Callable[[int], None]], Awaitable[None]]


class _Again(NamedTuple):
    """A found promotion as a record of `long-term`. Its offset is one less than that of the real record after it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes
    timestamp: int
    headers: tuple[tuple[str, bytes], ...] = ()


class Replay:
    """Runs a plan in its folder. If it is interrupted, the next replay with the same folder continues it.

    With `rebuild`, shards are built in `<folder>/shards`. Otherwise found promotions are sent to `long-term`, and the
    workers apply them.

        async with replaying(settings, plan, folder, rebuild=True) as replay:
            await replay.run(bar=lambda name: tell)
        replay.figures()
    """

    def __init__(
        self,
        settings: Settings,
        plan: Plan,
        progress_of: dict[int, ReplayProgress],
        shards: OwnedShards | None,
        rater: RatingChat | None,
        send: Send | None,
    ) -> None:
        self._settings, self._plan, self._progress_of = settings, plan, progress_of
        self._shards, self._rater, self._send = shards, rater, send
        self._topics = Topics.with_prefix(plan.asked.topic_prefix)
        self._keys = {key_of(user) for user in plan.asked.users}
        self.metrics = Metrics()

    async def run(self, bar: Callable[[str], RecordProgress]) -> None:
        """Run the plan to its end. `bar` returns the progress display for the name of a step."""
        plan, steps = self._plan, []
        heard = {partition: asyncio.Event() for partition in plan.conversations}
        if plan.asked.conversations:
            await self._each(self._look_through, LOOKED_THROUGH, plan.long_term, bar("log"), SIDE_BY_SIDE)
            # Without a model, no partition waits for answers. So replay the windows of one partition at a time: the
            # first shard can then be built sooner.
            at_a_time = 1 if self._rater is None else SIDE_BY_SIDE
            steps.append(
                self._each(self._hear, HEARD, plan.conversations, bar("conversations"), at_a_time, then=heard)
            )
        if self._shards is not None and self._send is None:
            steps.append(self._each(self._write, WRITTEN, plan.long_term, bar("memories"), SIDE_BY_SIDE, after=heard))
        await _together(steps)

    def figures(self) -> dict[str, int]:
        """Return the counts of messages and promotions since the replay was first started, with all its runs."""
        names = ("messages", "exchanges", "promoted", "in_log", "forgotten", "found", "unusable", "misrouted")
        return {name: sum(progress.noted.get(name, 0) for progress in self._progress_of.values()) for name in names}

    def effects(self) -> dict[str, int]:
        """Return the number of events of this run by their effect in the shards. Repeated events are not counted."""
        counts = {name: count for (name,), count in labelled(self.metrics.memories).items()}
        return {name: count for name, count in counts.items() if name != "repeated"}

    async def memories(self) -> int:
        """Return the number of memories in the shards."""
        return 0 if self._shards is None else sum(await self._shards.call_each(Shard.count))

    async def _each(
        self,
        step: Step,
        name: str,
        spans: Mapping[int, OffsetRange],
        tell: RecordProgress,
        at_a_time: int,
        *,
        after: Mapping[int, asyncio.Event] = {},
        then: Mapping[int, asyncio.Event] = {},
    ) -> None:
        """Run a step for all partitions that have not completed it.

        A partition waits for its event in `after` before the step, and sets its event in `then` after the step.
        """
        total, done = sum(span.end - span.before for span in spans.values()), dict.fromkeys(spans, 0)
        places = asyncio.Semaphore(at_a_time)

        async def one(partition: int) -> None:
            span, progress = spans[partition], self._progress_of[partition]

            def told(position: int) -> None:
                done[partition] = position - span.before
                tell(sum(done.values()), total)

            if partition in after:
                await after[partition].wait()
            async with places:
                if not progress.noted.get(name):
                    await step(partition, span, told)
                    progress.note(**{name: 1})
                told(span.end)
            if partition in then:
                then[partition].set()

        await _together([one(partition) for partition in spans])

    async def _look_through(self, partition: int, span: OffsetRange, told: Callable[[int], None]) -> None:
        """Read the log from its beginning, even if only a part of it is to be replayed.

        Otherwise a promotion in an earlier part of the log would count as missing in the log.
        """
        progress = self._progress_of[partition]
        position = progress.noted.get("looked_at", 0)
        await self._take_over(partition)
        async with aclosing(self._read(self._topics.long_term, partition, position, span.end)) as batches:
            async for records in batches:
                position = records[-1].offset + 1
                progress.log(*_promoted_and_forgotten(records), {"looked_at": position})
                told(position)

    async def _take_over(self, partition: int) -> None:
        """Copy tombstones, and ratings by a model, from the worker's shard, because the log may not have them.

        If a worker has the shard open, nothing is copied.
        """
        live = catalogs(self._settings.data_dir).get(partition)
        progress = self._progress_of[partition]
        if live is None or progress.noted.get("took_over"):
            return
        try:
            left = await asyncio.to_thread(carry_over, partition, live)
        except ShardLocked:
            return
        tombstones = [(one.user_id, one.memory_id, one.forgotten_at) for one in left.tombstones]
        progress.log([], tombstones, {})
        if self._shards is not None and left.ratings:
            await self._shards.call(partition, _keep_ratings, left.ratings)
        progress.note(took_over=1)

    async def _hear(self, partition: int, span: OffsetRange, told: Callable[[int], None]) -> None:
        async with ReplayedIntake(
            partition,
            span,
            self._progress_of[partition],
            settings=self._settings,
            topics=self._topics,
            shards=self._shards,
            rater=self._rater,
            send=self._send,
        ) as intake:
            position = await intake.begin()
            async with aclosing(self._read(self._topics.conversations, partition, position, span.end)) as batches:
                async for records in batches:
                    for first in range(0, len(records), RECORDS_AT_A_TIME):
                        part = records[first : first + RECORDS_AT_A_TIME]
                        position = part[-1].offset + 1
                        await intake.take(self._of_users(part), position)
                        told(position)
                        await asyncio.sleep(0)
            await intake.end()

    async def _write(self, partition: int, span: OffsetRange, told: Callable[[int], None]) -> None:
        await self._take_over(partition)
        progress, agent = self._progress_of[partition], self._writer(partition, span, told)
        agent.own(frozenset(self._plan.partitions))
        await agent.catch_up(partition, span.end)
        rest: Iterator[KeptPromotion] = progress.found()
        # Promotions that were already applied together with the log are applied again here, which has no effect.
        while found := list(islice(rest, EVENTS_A_TRANSACTION)):
            await (await agent.handle(partition, [self._again(partition, span.end, one) for one in found]))

    def _writer(self, partition: int, span: OffsetRange, told: Callable[[int], None]) -> LongTermAgent:
        """Build a long-term agent as in a worker. It reads the log, merged with the found promotions.

        The agent needs an intake, but the windows of this intake get no messages.
        """
        assert self._shards is not None
        kept = Kept(self._topics.long_term, self._progress_of[partition], None)
        context = replay_context(self._settings, self._topics, kept, self.metrics, _raised_by_the_call)
        intake = Intake(context, self._shards, None, None)

        async def read(partition: int, start: int, end: int) -> Batches:
            # With EARLIEST, read from `start`, so that a warning names the records that the log no longer has.
            begin = start if self._plan.asked.begin == EARLIEST else max(start, span.start)
            async for records in self._merged(partition, begin, end):
                told(records[-1].offset + 1)
                yield records

        notes = session_notes(context, self._shards, intake)
        return long_term_agent(context, self._shards, notes, Forgetters(intake.short_term), read)

    async def _merged(self, partition: int, start: int, end: int) -> AsyncIterator[Sequence[Any]]:
        waiting = self._progress_of[partition].found()
        first = next(waiting, None)
        async for records in self._read(self._topics.long_term, partition, start, end):
            merged: list[Any] = []
            for record in self._of_users(records):
                if first is not None and (at := _time_of(record)) is not None:
                    while first is not None and first.at <= at:
                        merged.append(self._again(partition, record.offset, first))
                        first = next(waiting, None)
                merged.append(record)
            if merged:
                yield merged

    def _again(self, partition: int, offset: int, found: KeptPromotion) -> _Again:
        return _Again(self._topics.long_term, partition, offset - 1, found.key, found.value, found.at)

    def _of_users(self, records: Sequence[Any]) -> Sequence[Any]:
        return [record for record in records if record.key in self._keys] if self._keys else records

    def _read(self, topic: str, partition: int, start: int, end: int) -> Batches:
        return records_between(self._settings.kafka, topic, partition, start, end) if start < end else _nothing()


@asynccontextmanager
async def replaying(settings: Settings, plan: Plan, folder: Path, *, rebuild: bool) -> AsyncIterator[Replay]:
    """Open a replay in `folder`. Raises `SiltstoneError` if another replay runs there."""
    async with AsyncExitStack() as stack:
        progress_of = {}
        for partition in plan.partitions:
            progress_of[partition] = ReplayProgress(folder / f"{partition}.sqlite")
            stack.callback(progress_of[partition].close)
        chats = Chats(settings.rater() if plan.asked.conversations else None, None)
        stack.push_async_callback(chats.close)
        shards = None
        if rebuild or chats.rater is not None:  # without `rebuild`, the shards only store the model's ratings
            storage = Storage(settings, folder / "shards", _raised_by_the_call)
            storage.start()
            stack.push_async_callback(storage.close)
            shards = storage.shards
            shards.own(frozenset(plan.partitions))
        send = None if rebuild else await stack.enter_async_context(_sending(settings.kafka, plan.asked.topic_prefix))
        yield Replay(settings, plan, progress_of, shards, chats.rater, send)


@asynccontextmanager
async def _sending(kafka: KafkaSettings, prefix: str) -> AsyncIterator[Send]:
    producer = await started_producer(kafka, linger_ms=20, max_request_size=MAX_RECORD_BYTES)
    topic = Topics.with_prefix(prefix).long_term

    async def send(value: bytes, key: bytes | None) -> asyncio.Future[Any]:
        acknowledged: asyncio.Future[Any] = await producer.send(topic, value, key=key)
        return acknowledged

    try:
        yield send
    except KafkaError as exc:
        raise await translated(kafka, exc, Right("WRITE", "topic", topic)) from exc
    finally:
        await producer.stop()


async def _together(steps: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all steps at the same time until all have ended. If one fails, cancel the others."""
    tasks = [asyncio.create_task(step) for step in steps]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _keep_ratings(shard: Shard, ratings: Sequence[Rated]) -> None:
    for one in ratings:
        if shard.ratings.of(one.memory_id, one.model) is None:
            shard.ratings.put(*one)


def _promoted_and_forgotten(
    records: Sequence[Any],
) -> tuple[list[uuid.UUID], list[tuple[str, uuid.UUID | None, int]]]:
    """Return the event ids of the promotions, and the tombstones, in the form that `ReplayProgress.log` expects."""
    promoted: list[uuid.UUID] = []
    tombstones: list[tuple[str, uuid.UUID | None, int]] = []
    for _, event in readable(decode, records):
        match event:
            case Promotion():
                promoted.append(event.event_id)
            case Forget():
                tombstones.append((event.user_id, event.memory_id, event.timestamp))
            case ForgetUser():
                tombstones.append((event.user_id, None, event.timestamp))
    return promoted, tombstones


def _time_of(record: Any) -> int | None:
    """Return the time of the event in a record (epoch ms), or None if the record is not a valid event."""
    try:
        return decode(record).timestamp
    except BadRecord:
        return None


async def _nothing() -> Batches:
    for records in tuple[Sequence[Any], ...]():
        yield records


def _raised_by_the_call(_exc: BaseException, _where: str) -> None:
    """Do nothing, because a later call to a shard that cannot be opened raises the error."""
