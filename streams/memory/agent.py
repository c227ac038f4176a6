"""Long-term agent: decodes events of `long-term`, embeds their texts, and applies each group in one transaction.

Events that ask for a short-term memory are given to the session notes instead of a shard.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from pydantic import ValidationError

from schemas.errors import ShardNotHere
from schemas.events import LONG_TERM_EVENT, Edit, LongTermEvent, Promotion, Remember
from schemas.memories import Memory
from schemas.record_values import invalid, json_object
from schemas.settings import MemorySettings
from schemas.sources import sources_beside
from schemas.times import now_ms
from streams.forgetting.forgetters import Forgetters, forgettings
from streams.intake.rules.importance import Importance
from streams.intake.session_notes import SessionNotes, is_short_term
from streams.kafka.inbox import Inbox
from streams.kafka.promotion_ages import PromotionAges
from streams.memory.group_commit import EVENTS_A_TRANSACTION, GroupWriter
from streams.memory.retention import Read, watermark_at
from streams.runtime.backlog_gate import BacklogGate
from streams.runtime.clock import Clock
from streams.shards.models import ShardModel
from streams.shards.owned import OwnedShards
from streams.telemetry.activity.message_flow import Flow
from streams.telemetry.metrics import Metrics
from tables.memories.applied import Applied
from tables.memories.shard import Shard

log = logging.getLogger(__name__)

#: Callback with a partition and its new memories.
Born = Callable[[int, Sequence[Memory]], None]


def decode(record: Any) -> LongTermEvent:
    """Decode an event of `long-term`. Raises `BadRecord`."""
    fields = json_object(record.value)
    fields.setdefault("timestamp", record.timestamp)
    if fields.get("type") == "promotion" and (sources := sources_beside(record.headers)):
        fields.setdefault("sources", sources)
    try:
        return LONG_TERM_EVENT.validate_python(fields)
    except ValidationError as exc:
        raise invalid(exc) from exc


def decoder(memory: MemorySettings) -> Callable[[Any], LongTermEvent]:
    """Return a function that decodes like `decode`, and computes the importance of memories that state none."""
    importance = Importance(memory)
    return lambda record: importance.weighed(decode(record))


def apart(events: Sequence[LongTermEvent]) -> list[Sequence[LongTermEvent]]:
    """Split events into parts, in order, so that no two users have the same event id within a part.

    Otherwise a user could get another user's vector, because a part's vectors are looked up by event id.
    """
    parts, users, start = list[Sequence[LongTermEvent]](), dict[uuid.UUID, str](), 0
    for place, event in enumerate(events):
        if users.setdefault(event.event_id, event.user_id) != event.user_id:
            parts.append(events[start:place])
            users, start = {event.event_id: event.user_id}, place
    return [*parts, events[start:]]


class LongTermAgent:
    """Writes promotions and commands into the shard of their partition.

    A shard records the offset up to which its events are applied. After the loss of a disk or a move to another
    worker, this offset may be lower than the offset of the next fetched records. Then the agent first reads the
    records in between from the log and applies them. `read` returns the records of a partition between two offsets.
    """

    def __init__(
        self,
        *,
        shards: OwnedShards,
        inbox: Inbox[LongTermEvent],
        metrics: Metrics,
        clock: Clock,
        gate: BacklogGate,
        notes: SessionNotes,
        forgetters: Forgetters,
        read: Read,
        born: Born,
        flow: Flow | None = None,
    ) -> None:
        self._shards, self._gate, self._coming_back = shards, gate, shards.coming_back
        self._notes, self._forgetters, self._born, self._read = notes, forgetters, born, read
        self._inbox, self._metrics, self._clock = inbox, metrics, clock
        self._flow = Flow() if flow is None else flow
        self._ages = PromotionAges(metrics.promotion_age)
        self._order: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._caught_up: dict[int, asyncio.Event] = {}
        self._writers: dict[int, GroupWriter] = {}
        #: Partitions whose log was found to match the shard's low watermark.
        self._of_watermark = set[int]()

    async def handle(self, partition: int, records: Sequence[Any]) -> Awaitable[Any]:
        """Queue a fetched batch of a partition.

        The caller must await the returned awaitable before the batch counts as processed. It is cancelled if the
        partition is revoked before. Raises `ShardNotHere` if another worker has the partition.
        """
        writer = self._writers.get(partition)
        if writer is None:
            raise ShardNotHere(partition, "its partition is on another worker, or moving; ask again")
        return await writer.join(records)

    def own(self, partitions: frozenset[int]) -> None:
        """Own exactly these partitions. Their shards count as behind the log until `catch_up` has finished.

        Waiting records belong to an earlier assignment. They are dropped, because they are read again.
        """
        self.revoke(frozenset(self._writers))
        self._caught_up = {partition: asyncio.Event() for partition in partitions}
        for partition in partitions:
            self._coming_back.is_to_catch_up(partition)
        self._of_watermark.clear()
        self._ages.clear()
        self._writers = {
            partition: GroupWriter(partial(self._write, partition), self._gate.wait) for partition in partitions
        }

    def revoke(self, partitions: frozenset[int]) -> None:
        """Drop the waiting records of these partitions. They are neither written nor acknowledged."""
        for partition in partitions & self._writers.keys():
            self._writers.pop(partition).revoke()

    async def stop(self) -> None:
        """Stop writing. The next start reads the unwritten records again."""
        writers = list(self._writers.values())
        self.revoke(frozenset(self._writers))
        for writer in writers:
            await writer.stopped()

    async def _write(self, partition: int, records: Sequence[Any]) -> None:
        """Write one group of consecutive fetched records."""
        async with self._order[partition]:
            position = await self._fill_up(partition, records[0].offset)
            if records[0].offset < position:
                records = await self._not_in_for_good(partition, records)
                if not records:
                    return
            read = list(self._inbox.read(records))
            for record, event in read:
                self._ages.note(event, record.headers)
            events = [event for _, event in read]
            await self._apply(partition, events, records[-1].offset + 1, again=records[0].offset < position)
            await self._forgetters.follow(partition, forgettings(read, now_ms()))
            await self._notes.take(partition, events)

    async def _not_in_for_good(self, partition: int, records: Sequence[Any]) -> Sequence[Any]:
        """Return the records at or above the shard's low watermark. Records below it are already applied.

        If the log does not match the watermark, the log is new: either the broker has lost its data, or this worker's
        data directory comes from another broker. Then all records are returned.
        """
        low = await self._shards.call(partition, lambda shard: shard.watermarks.low())
        if low is None or records[0].offset >= low.offset:
            return records
        if partition not in self._of_watermark:
            if await watermark_at(self._read, partition, low.offset) != low:
                log.warning("shard %d: the log was replaced: its events count as new", partition)
                await self._shards.call(partition, lambda shard: shard.watermarks.start_over())
                return records
            self._of_watermark.add(partition)
        left = [record for record in records if record.offset >= low.offset]
        self._count(Applied(repeated=len(records) - len(left)))
        return left

    @property
    def catching_up(self) -> list[int]:
        """The partitions whose shards may not have caught up with the log yet."""
        return sorted(partition for partition, event in self._caught_up.items() if not event.is_set())

    async def caught_up(self, partition: int) -> None:
        """Wait until the partition's shard has caught up. Raises `ShardNotHere` if another worker has the shard."""
        if partition not in self._caught_up:
            raise ShardNotHere(partition, "its partition is on another worker, or moving; ask again")
        await self._caught_up[partition].wait()

    async def catch_up(self, partition: int, committed: int) -> None:
        """Apply all records below the consumer group's `committed` offset that the shard does not have.

        The shard may be new on this worker, or its disk may have been lost. If partitions are assigned meanwhile, the
        shard does not count as caught up, because the caller then fetches the committed offset again.
        """
        caught_up = self._caught_up.get(partition)
        if caught_up is None:
            return  # the partition has moved
        try:
            async with self._order[partition]:
                await self._fill_up(partition, committed)
            self._clock.observe(await self._shards.call(partition, lambda shard: shard.ageing.newest_event()))
        except ShardNotHere:
            return  # the partition has moved
        if self._caught_up.get(partition) is not caught_up:
            return
        caught_up.set()
        self._coming_back.is_back([partition], "memories")

    async def _fill_up(self, partition: int, end: int) -> int:
        """Apply the log from the shard's position up to the offset `end`. Return the shard's new position."""
        start = await self._shards.position(partition)
        if start >= end:
            return start
        log.warning("shard %d: it is behind: offsets %d to %d are read again", partition, start, end - 1)
        reached = self._coming_back.begins(partition, "memories", "catching up", 0, end - start)
        async for records in self._read(partition, start, end):
            for first in range(0, len(records), EVENTS_A_TRANSACTION):
                part = records[first : first + EVENTS_A_TRANSACTION]
                read = list(self._inbox.read_again(part))
                await self._apply(partition, [event for _, event in read], part[-1].offset + 1, again=True)
                await self._forgetters.follow_again(partition, forgettings(read, now_ms()))
                reached(part[-1].offset + 1 - start, end - start)
        await self._apply(partition, [], end, again=True)
        caught_up = self._caught_up.get(partition)
        if caught_up is not None and caught_up.is_set():  # behind only because the log lacks some offsets
            self._coming_back.is_back([partition], "memories")
        log.info("shard %d: it has caught up", partition)
        return end

    async def _apply(self, partition: int, events: Sequence[LongTermEvent], position: int, *, again: bool) -> None:
        """Apply events, and record that the shard has all events below the offset `position`.

        `again` is true if some events may be applied already. Such events are removed before texts are embedded.
        """
        *before, last = apart(events)
        for part in before:
            await self._apply_apart(partition, part, None, position, again)
        await self._apply_apart(partition, last, position, position, again)

    async def _apply_apart(
        self, partition: int, events: Sequence[LongTermEvent], position: int | None, log_end: int, again: bool
    ) -> None:
        lasting: Sequence[LongTermEvent] = [event for event in events if not is_short_term(event)]
        fresh = await self._shards.call(partition, Shard.unapplied, lasting) if again else lasting
        texts = {
            event.event_id: event.text
            for event in fresh
            if isinstance(event, Promotion | Remember | Edit) and event.text is not None
        }

        async def written(shard: ShardModel) -> Applied:
            by_event = dict(zip(texts, await shard.embed(list(texts.values()), of="document"), strict=True))
            async with self._shards.models.writing(partition):
                return await shard.call(Shard.apply, fresh, by_event, now_ms(), position, log_end)

        applied = await self._shards.with_model(partition, written)
        applied.repeated += len(lasting) - len(fresh)
        self._ages.committed(lasting, applied.fresh)
        for event in applied.fresh:
            self._clock.observe(event.timestamp)
        self._count(applied)
        self._born(partition, applied.born)
        if self._flow.open:
            self._flow.written(applied.fresh)

    def _count(self, applied: Applied) -> None:
        for effect, count in applied.effects().items():
            self._metrics.memories.labels(effect).inc(count)
