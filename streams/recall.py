"""Questions find memories: a query becomes candidates of its user, filtered, ranked, and touched."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.events import Touch
from schemas.memories import Memory, SearchHit, State
from schemas.messages import iso
from schemas.settings import LifecycleSettings
from schemas.topics import Topics, key_of, partition_of
from streams.clock import Clock
from streams.hotpath import Outbox
from streams.metrics import Metrics
from streams.models import ShardModel
from streams.rules.filtering import Filter
from streams.rules.lifecycle import score_of, state_of
from streams.rules.ranking import LexicalIndex, carry, fuse, probe, questions, top
from streams.shards import OwnedShards
from tables.session_notes import Note
from tables.shard import Shard
from tables.vectors import Vectors

CACHED_USERS = 1024


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: a user's question, how many answers, and among which of the user's memories.

    Those in whose place another one stands are left out unless `replaced` ones are asked for.
    """

    user_id: str
    text: str
    top_k: int
    states: frozenset[State]
    explain: bool = False
    replaced: bool = False
    min_relevance: float = 0.0
    filters: tuple[Filter, ...] = ()


@dataclass(slots=True)
class _Ready:
    """What ranking needs of a user's memories, kept while their texts stay the same."""

    seqs: list[int]
    lexical: LexicalIndex
    previous: npt.NDArray[np.int64]
    speakers: frozenset[str]


class Recall:
    """Searches the shards of this worker."""

    def __init__(
        self,
        *,
        shards: OwnedShards,
        outbox: Outbox,
        metrics: Metrics,
        clock: Clock,
        topics: Topics,
        partitions: int,
        lifecycle: LifecycleSettings,
    ) -> None:
        self._shards, self._outbox = shards, outbox
        self._metrics, self._clock, self._topics = metrics, clock, topics
        self._partitions, self._lifecycle = partitions, lifecycle
        self._users: OrderedDict[str, _Ready] = OrderedDict()

    async def search(self, query: Query) -> list[SearchHit]:
        """The user's memories that answer, best first. Being returned counts as an access.

        Raises `ShardNotHere` where the user's partition is not this worker's.
        """
        with self._metrics.search_seconds.time():
            partition = partition_of(query.user_id, self._partitions)
            memories = await self._shards.call(partition, Shard.memories_of, query.user_id)

            async def ranked(shard: ShardModel) -> list[SearchHit]:
                async def cosines(vector: Vectors) -> Vectors:
                    return await shard.call(Shard.similarities, query.user_id, vector, memories)

                return await self._rank(query, memories, self._ready(query.user_id, memories), shard, cosines)

            hits = await self._shards.with_model(partition, ranked)
        if hits:
            await self._touch(query.user_id, [hit.id for hit in hits])
        return hits

    async def search_archive(self, user_id: str, text: str, top_k: int, explain: bool = False) -> list[SearchHit]:
        """The user's archived memories that answer, best first, in every state. It counts as no access."""
        partition = partition_of(user_id, self._partitions)
        query = Query(user_id, text, top_k, frozenset(State), explain, replaced=True)

        async def ranked(shard: ShardModel) -> list[SearchHit]:
            archived, stored = await shard.call(Shard.archive_with_vectors, user_id)
            memories = [one.memory for one in archived]

            async def cosines(vector: Vectors) -> Vectors:
                return stored @ vector

            return await self._rank(query, memories, _prepare(memories), shard, cosines)

        return await self._shards.with_model(partition, ranked)

    async def _rank(
        self,
        query: Query,
        memories: Sequence[Memory],
        ready: _Ready,
        shard: ShardModel,
        cosines: Callable[[Vectors], Awaitable[Vectors]],
    ) -> list[SearchHit]:
        if not memories or not query.text.strip():
            return []
        parts = questions(query.text)
        lexical = np.stack([ready.lexical.scores(part) for part in parts])  # before the next question extends it
        model = await shard.model()
        vectors = await shard.embed([probe(part, ready.speakers) for part in parts])
        dense = np.stack([await cosines(vector) for vector in vectors])
        fused = fuse(dense, lexical, model.cosine.of(query.text))
        relevance = carry(fused.max(axis=0), ready.previous)
        now = self._clock.now()
        scores = [score_of(memory, now, self._lifecycle) for memory in memories]
        states = [state_of(score, self._lifecycle) for score in scores]
        allowed = np.array([_may(*one, query) for one in zip(memories, states, strict=True)], np.bool_)
        allowed &= relevance >= query.min_relevance
        hits = []
        for row in top(relevance, allowed, query.top_k):
            why = None
            if query.explain:
                why = {
                    "cosine": round(float(dense.max(axis=0)[row]), 4),
                    "cosine_rank": _rank_of(dense.max(axis=0), allowed, row),
                    "bm25": round(float(lexical.max(axis=0)[row]), 4),
                    "bm25_rank": _rank_of(lexical.max(axis=0), allowed, row),
                }
            hits.append(_hit(memories[row], float(relevance[row]), scores[row], states[row], why))
        return hits

    def _ready(self, user_id: str, memories: tuple[Memory, ...]) -> _Ready:
        """Numbers tell whether texts are the same: a memory with another text has another number."""
        seqs = [memory.seq for memory in memories]
        found = self._users.get(user_id)
        if found is None or found.seqs != seqs:
            if found is not None and found.seqs == seqs[: len(found.seqs)]:
                found = _extended(found, memories)
            else:
                found = _prepare(memories)
            self._users[user_id] = found
            if len(self._users) > CACHED_USERS:
                self._users.popitem(last=False)
        self._users.move_to_end(user_id)
        return found

    async def _touch(self, user_id: str, ids: list[uuid.UUID]) -> None:
        event = Touch(event_id=uuid.uuid4(), user_id=user_id, timestamp=self._clock.now(), memory_ids=ids)
        await self._outbox.send(self._topics.long_term, event.model_dump_json().encode(), key=key_of(user_id))


def _may(memory: Memory, state: State, query: Query) -> bool:
    """Whether the memory may be an answer, however well it fits."""
    return (
        state in query.states
        and (query.replaced or memory.current)
        and all(condition.matches(memory) for condition in query.filters)
    )


def _prepare(memories: Sequence[Memory]) -> _Ready:
    return _Ready(
        [memory.seq for memory in memories],
        LexicalIndex.build(memory.text for memory in memories),
        _previous(memories),
        frozenset(name for memory in memories for name in memory.meta.get("speakers", ())),
    )


def _extended(ready: _Ready, memories: Sequence[Memory]) -> _Ready:
    """The same with the memories that have come since."""
    new = memories[len(ready.seqs) :]
    ready.lexical.add(memory.text for memory in new)
    return _Ready(
        [memory.seq for memory in memories],
        ready.lexical,
        _previous(memories),
        ready.speakers.union(name for memory in new for name in memory.meta.get("speakers", ())),
    )


def _previous(memories: Sequence[Memory]) -> npt.NDArray[np.int64]:
    """For each row the one before it in the same session, -1 where there is none."""
    newest_of: dict[str | None, int] = {None: -1}
    previous = []
    for row, memory in enumerate(memories):
        previous.append(newest_of.get(memory.session_id, -1))
        if memory.session_id is not None:
            newest_of[memory.session_id] = row
    return np.array(previous, np.int64)


def _rank_of(scores: npt.NDArray[np.float32], allowed: npt.NDArray[np.bool_], row: int) -> int:
    """1 for the best among the allowed."""
    return 1 + int(np.count_nonzero(scores[allowed] > scores[row]))


def _hit(memory: Memory, relevance: float, score: float, state: State, why: dict[str, Any] | None) -> SearchHit:
    return SearchHit(
        id=memory.id,
        memory=memory.text,
        relevance=round(relevance, 4),
        score=round(score, 2),
        state=state,
        importance=memory.importance,
        kind=memory.kind,
        created_at=iso(memory.created_at),
        session_id=memory.session_id,
        agent_id=memory.agent_id,
        message_ids=list(memory.message_ids),
        metadata=memory.meta,
        superseded_by=memory.superseded_by,
        summarized_by=memory.summarized_by,
        explain=why,
    )


def prompt_text(exchanges: Sequence[str], hits: Sequence[SearchHit], notes: Sequence[Note]) -> str:
    """Memories, notes and the newest exchanges as one text that an assistant puts into its prompt.

    A note of which a memory was made is said once.
    """
    parts = []
    noted = {note.id for note in notes}
    known = [f"- {_one_line(hit.memory)}" for hit in hits if hit.id not in noted]
    if known:
        parts.append("What is known of the user:\n" + "\n".join(known))
    if notes:
        parts.append("To remember for now:\n" + "\n".join(f"- {_one_line(note.text)}" for note in notes))
    if exchanges:
        parts.append("The conversation so far:\n" + "\n".join(exchanges))
    return "\n\n".join(parts)


def _one_line(text: str) -> str:
    return " / ".join(line.strip() for line in text.splitlines() if line.strip())
