"""Refining job: asks a configured model which older memory a new one replaces, and for texts of summaries.

It runs concurrently with the stream of records, and never blocks it. Questions wait in a queue. If the queue is full,
the oldest question is dropped. While `long-term` has a backlog, no questions are asked, because the log may already
contain events with the answers. An answer becomes an event, as if a client had sent it. The event's id is derived
from the memories' ids, so a replay needs no model.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np

from schemas.errors import ShardNotHere
from schemas.events import Edit, Supersede
from schemas.ids import event_id
from schemas.memories import Memory
from schemas.settings import LongTermSettings
from streams.kafka.event_log import EventLog
from streams.models.refiner import QUOTED_CHARS
from streams.runtime.clock import Clock
from streams.runtime.ending import ended
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics
from tables.memories.items import is_item
from tables.memories.likeness import least_cosines
from tables.memories.overflow import KIND as SUMMARY
from tables.memories.pinning import may_be_replaced
from tables.memories.sameness import says_the_same
from tables.memories.shard import Shard

log = logging.getLogger(__name__)

#: Maximum number of questions that wait for the model. If there are more, the oldest questions are dropped.
WAITING: Final = 1_000
#: If more events than this of `long-term` are not applied yet, all questions wait.
BACKLOG: Final = 256
LOOK_AGAIN_SECONDS: Final = 0.2

Kind = Literal["supersede", "summary"]


class Refiner(Protocol):
    """A model that compares memories and summarises them."""

    async def replaced(self, new: Memory, older: Sequence[Memory]) -> int | None:
        """Return the number, from 1, of the older memory that is no longer true; 0 if all are still true.

        Return None if the model gave no usable answer. Never raises.
        """

    async def summary(self, members: Sequence[Memory]) -> str | None:
        """Return a summary of the memories; None if there is no usable answer. Never raises."""

    def resumes_in(self) -> float:
        """Return the seconds until the model may be asked again; 0 if it may be asked now."""


@dataclass(frozen=True, slots=True)
class _PendingQuestion:
    """A question about a memory. It has only the memory's id, because the text is read when the model is asked."""

    kind: Kind
    partition: int
    user_id: str
    memory_id: uuid.UUID


class RefiningJob:
    """Asks a model about new memories. `backlog` returns the number of events in `long-term` not applied yet."""

    def __init__(
        self,
        *,
        refiner: Refiner,
        concurrency: int,
        shards: OwnedShards,
        event_log: EventLog,
        metrics: Metrics,
        clock: Clock,
        settings: LongTermSettings,
        backlog: Callable[[], int],
    ) -> None:
        self._refiner, self._concurrency = refiner, concurrency
        self._shards, self._event_log, self._metrics = shards, event_log, metrics
        self._clock, self._settings, self._backlog = clock, settings, backlog
        self._wanted = {"supersede": settings.supersede.enabled, "summary": settings.summaries_by_model}
        self._waiting: asyncio.Queue[_PendingQuestion] = asyncio.Queue(WAITING)
        self._workers: list[asyncio.Task[None]] = []
        self._stopping = False

    def start(self) -> None:
        """Start the workers."""
        self._workers = [asyncio.create_task(self._work()) for _ in range(self._concurrency)]

    async def stop(self) -> None:
        self._stopping = True
        await ended(self._workers)

    def born(self, partition: int, memories: Sequence[Memory]) -> None:
        """Queue the questions about new memories of a partition."""
        for memory in memories:
            if is_item(memory):  # an item replaces only an item with the same key
                continue
            kind: Kind = "summary" if memory.kind == SUMMARY else "supersede"
            if self._wanted[kind]:
                if self._waiting.full():
                    self._count(self._waiting.get_nowait().kind, "dropped")
                self._waiting.put_nowait(_PendingQuestion(kind, partition, memory.user_id, memory.id))
        self._metrics.refinements_waiting.set(self._waiting.qsize())

    def own(self, partitions: frozenset[int]) -> None:
        """Own exactly these partitions. Waiting questions about memories of other partitions are dropped."""
        for _ in range(self._waiting.qsize()):
            question = self._waiting.get_nowait()
            if question.partition in partitions:
                self._waiting.put_nowait(question)
            else:
                self._count(question.kind, "dropped")
        self._metrics.refinements_waiting.set(self._waiting.qsize())

    async def _work(self) -> None:
        while True:
            question = await self._waiting.get()
            self._metrics.refinements_waiting.set(self._waiting.qsize())
            try:
                await self._until_there_is_time()
                await (self._reword(question) if question.kind == "summary" else self._supersede(question))
            except ShardNotHere:
                self._count(question.kind, "dropped")
            except asyncio.CancelledError:
                if self._stopping:
                    raise
                self._count(question.kind, "dropped")  # the shard moved to another worker while it was being opened
            except Exception as exc:  # refining is optional, so a failure must not stop the worker
                log.error("shard %d: a memory is left as it is: %s", question.partition, type(exc).__name__)
                self._count(question.kind, "failed")

    async def _until_there_is_time(self) -> None:
        while self._backlog() > BACKLOG or self._refiner.resumes_in():  # noqa: ASYNC110 - neither has an event
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _supersede(self, question: _PendingQuestion) -> None:
        shown = await self._shards.call(question.partition, _older_ones, question, self._settings)
        if shown is None:
            return
        new, older = shown
        self._count("supersede", "asked")
        number = await self._refiner.replaced(new, older)
        if number is None:
            self._count("supersede", "failed")
            return
        gone = older[number - 1] if number else None
        if gone is None or not await self._unchanged(question, new, gone):
            self._count("supersede", "kept")
            return
        await self._post(
            question,
            Supersede(
                event_id=event_id("supersede", gone.id, new.id),
                user_id=question.user_id,
                timestamp=self._clock.now(),
                memory_id=gone.id,
                by=new.id,
                reason="model",
            ),
        )

    async def _reword(self, question: _PendingQuestion) -> None:
        shown = await self._shards.call(question.partition, _summed_up, question)
        if shown is None:
            return
        summary, members = shown
        self._count("summary", "asked")
        text = await self._refiner.summary(members)
        if text is None:
            self._count("summary", "failed")
            return
        if text == summary.text or not await self._unchanged(question, summary, *members):
            self._count("summary", "kept")
            return
        await self._post(
            question,
            Edit(
                event_id=event_id("summary", summary.id),
                user_id=question.user_id,
                timestamp=self._clock.now(),
                memory_id=summary.id,
                text=text,
                reason="model",
            ),
        )

    async def _unchanged(self, question: _PendingQuestion, *asked: Memory) -> bool:
        """True if all memories in the question to the model still exist and have not changed since then."""
        held = await self._shards.call(question.partition, _held, question.user_id)
        return all(memory.id in held and _standing(held[memory.id]) == _standing(memory) for memory in asked)

    async def _post(self, question: _PendingQuestion, event: Supersede | Edit) -> None:
        self._event_log.append(event)
        self._count(question.kind, "replaced")
        await self._event_log.deliver()

    def _count(self, kind: Kind, outcome: str) -> None:
        self._metrics.refinements.labels(kind, outcome).inc()


def _older_ones(
    shard: Shard, question: _PendingQuestion, settings: LongTermSettings
) -> tuple[Memory, list[Memory]] | None:
    """Return the new memory, and the older memories that it may replace, most similar first.

    Return None if the new memory no longer exists, or if there are no such older memories.
    """
    memories = shard.memories_of(question.user_id)
    new = next((memory for memory in memories if memory.id == question.memory_id and memory.current), None)
    if new is None:
        return None
    older = [memory for memory in memories if _may_give_way(memory, new)]
    if not older:
        return None
    cosines = shard.resembling(new, older)
    least, most = settings.supersede.min_cosine, settings.near_copy
    if least is None:
        least = least_cosines(shard.reembedding.model, new.text).supersede
    # A very similar text may still differ in a fact, so the model is asked about it, unless both texts say the same.
    similar = [
        older[row]
        for row in np.argsort(-cosines, kind="stable")
        if cosines[row] >= least and not (cosines[row] >= most and says_the_same(older[row].text, new.text))
    ]
    return (new, similar[: settings.supersede.candidates]) if similar else None


def _may_give_way(memory: Memory, new: Memory) -> bool:
    """True if the memory `new` may replace the older memory.

    A summary may not be replaced, because it has more than one fact. A long memory may not be replaced, because the
    model sees only parts of its text. For pinned memories, see `may_be_replaced`.
    """
    return (
        (memory.created_at, memory.seq) < (new.created_at, new.seq)
        and memory.current
        and may_be_replaced(memory)
        and memory.kind != SUMMARY
        and not is_item(memory)
        and len(memory.text) <= QUOTED_CHARS
    )


def _summed_up(shard: Shard, question: _PendingQuestion) -> tuple[Memory, list[Memory]] | None:
    """Return the summary, and the memories that it sums up, oldest first.

    Return None if the summary or one of these memories no longer exists, or if the summary's text was edited.
    """
    held = _held(shard, question.user_id)
    summary = held.get(question.memory_id)
    if summary is None or any(identity not in held for identity in summary.summary_of):
        return None
    if any(
        done.event == "edited" and "text" in done.details["before"]
        for done in shard.history.of(question.user_id, summary.id)
    ):
        return None
    members = sorted((held[identity] for identity in summary.summary_of), key=lambda memory: memory.created_at)
    return summary, members


def _held(shard: Shard, user_id: str) -> dict[uuid.UUID, Memory]:
    return {memory.id: memory for memory in shard.memories_of(user_id)}


def _standing(memory: Memory) -> tuple[object, ...]:
    return memory.text, memory.pinned, memory.summarized_by, memory.superseded_by
