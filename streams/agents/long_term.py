"""long-term → shard: events are decoded, embedded in batches, and applied in one transaction a batch.

What is to be remembered for a while only goes to the notes of its session instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from schemas.errors import BadRecord
from schemas.events import LONG_TERM_EVENT, LongTermEvent, Promotion, Remember
from streams.agents.notes import NotesAgent, is_short_term
from streams.clients.embedding import Embedding
from streams.clock import Clock, now_ms
from streams.dead_letters import DeadLetters, invalid, json_object
from streams.metrics import Metrics
from streams.precedence import IntakeFirst
from streams.shards import OwnedShards
from tables.batch import Applied
from tables.shard import Shard

#: Events in one transaction: more is hardly faster, and searches wait behind it.
EVENTS_A_TRANSACTION = 256


def decode(record: Any) -> LongTermEvent:
    """An event of `long-term`. Raises `BadRecord`."""
    fields = json_object(record.value)
    fields.setdefault("timestamp", record.timestamp)
    try:
        return LONG_TERM_EVENT.validate_python(fields)
    except ValidationError as exc:
        raise invalid(exc) from exc


class LongTermAgent:
    """Writes what is promoted and commanded into the shard of its partition."""

    def __init__(
        self,
        *,
        shards: OwnedShards,
        embedding: Embedding,
        dead_letters: DeadLetters,
        metrics: Metrics,
        clock: Clock,
        precedence: IntakeFirst,
        notes: NotesAgent,
    ) -> None:
        self._shards, self._embedding, self._precedence = shards, embedding, precedence
        self._notes = notes
        self._dead_letters, self._metrics, self._clock = dead_letters, metrics, clock

    async def handle(self, partition: int, records: Sequence[Any]) -> None:
        """One fetched batch of a partition."""
        events = []
        for record in records:
            try:
                events.append(decode(record))
            except BadRecord as error:
                self._dead_letters.bury(record, error)
        for start in range(0, len(events), EVENTS_A_TRANSACTION):
            await self._precedence.wait()
            await self._apply(partition, events[start : start + EVENTS_A_TRANSACTION])

    async def _apply(self, partition: int, events: Sequence[LongTermEvent]) -> None:
        lasting = [event for event in events if not is_short_term(event)]
        fresh = await self._shards.call(partition, Shard.unapplied, lasting)
        texts = [event for event in fresh if isinstance(event, Promotion | Remember)]
        vectors = await self._embedding.embed([event.text for event in texts])
        by_event = dict(zip((event.event_id for event in texts), vectors, strict=True))
        applied = await self._shards.call(partition, Shard.apply, fresh, by_event, now_ms())
        applied.repeated += len(lasting) - len(fresh)
        for event in fresh:
            self._clock.observe(event.timestamp)
        self._count(applied)
        await self._notes.take(partition, events)

    def _count(self, applied: Applied) -> None:
        for effect, count in asdict(applied).items():
            if count:
                self._metrics.memories.labels(effect).inc(count)
