"""Search: reads the user's memories, ranks and filters them, and counts the hits as accesses.

The exchanges of the user's short-term windows are ranked together with the memories. Each exchange is treated as the
memory that it may become.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from aiokafka.errors import KafkaError

from schemas.exchanges import Exchange
from schemas.memories import SHORT_TERM, Memory, SearchHit
from schemas.settings import LifecycleSettings
from schemas.topics import partition_of
from streams.kafka.event_log import EventLog
from streams.models.reranking.reranker import Reranker
from streams.recall.accesses import Accesses
from streams.recall.answers import answers, archived_answers, to_rerank
from streams.recall.candidates import candidates_of, no_memories_of
from streams.recall.query import Hits, PreparedQuery, Query
from streams.recall.ranking import probe, questions
from streams.recall.reranking import Reranked
from streams.recall.times import AskedTimes
from streams.recall.windows import SaidLately
from streams.runtime.clock import Clock
from streams.shards.models import ShardModel
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics
from tables.memories.shard import Shard
from tables.search.window_rows import SaidRows

log = logging.getLogger(__name__)

#: Seconds that a search keeps for the ranking after the reranker's answer, before the time at which it must answer.
KEPT_SECONDS: Final = 1.0


class Recall:
    """Searches the shards and windows of this worker, and sends the accesses to the log."""

    def __init__(
        self,
        *,
        shards: OwnedShards,
        said: SaidLately,
        event_log: EventLog,
        metrics: Metrics,
        clock: Clock,
        partitions: int,
        lifecycle: LifecycleSettings,
        updates: bool = True,
        reranker: Reranker | None = None,
    ) -> None:
        self._shards, self._said, self._event_log = shards, said, event_log
        self._said_rows = SaidRows()
        self._metrics, self._clock = metrics, clock
        self._partitions, self._lifecycle, self._updates = partitions, lifecycle, updates
        self._reranker, self._accesses = reranker, Accesses()

    async def search(self, query: Query, until: float = math.inf) -> Hits:
        """Return the best hits for the query, best first. Call `count` with those that are shown.

        `until` is the time of the event loop's clock at which the search must have answered: it then does not wait
        for the reranker until that time.

        Raises `ShardNotHere` if this worker does not own the user's partition.
        """
        partition = partition_of(query.user_id, self._partitions)
        with self._metrics.search_seconds.time():

            async def ranked(shard: ShardModel) -> Hits:
                if not query.text.strip():
                    return Hits()
                said = self._said.by(partition, query.user_id) if query.short_term else []
                if said:
                    return await self._among_said(query, said, shard, until)
                speakers = await shard.call(Shard.speakers_of, query.user_id)
                if speakers is None:
                    return Hits()
                asked = await self._reranked(await self._asked(query, speakers, shard), shard, until)
                return await shard.call(answers, asked)

            return await self._shards.with_model(partition, ranked)

    def count(self, query: Query, hits: Iterable[SearchHit]) -> None:
        """Note the relevant hits as accesses, and count the hits that are window exchanges.

        A search returns its best hits even if none of them is relevant. If all of them counted as accesses, no
        memory's score would decay.
        """
        least, used, short_term, outdated = self._lifecycle.access_min_relevance, [], 0, 0
        for hit in hits:
            outdated += hit.updated_by is not None
            if hit.state == SHORT_TERM:
                short_term += 1
            elif hit.relevance >= least:
                used.append(hit.id)
        if short_term:
            self._metrics.short_term_hits.inc(short_term)
        if outdated:
            self._metrics.outdated_hits.inc(outdated)
        if used and query.touch:
            self.accessed(query.user_id, used)

    async def _among_said(
        self, query: Query, said: Sequence[tuple[str, Exchange]], shard: ShardModel, until: float
    ) -> Hits:
        """Search a user's memories and window exchanges. Embed only the exchanges that may answer the query."""
        speakers, rows = await shard.call(candidates_of, query, said, self._said_rows)
        if speakers is None and not rows:
            return Hits()
        asked = await self._asked(query, speakers or frozenset(), shard)
        if rows:
            vectors = await shard.embed_said([row.text for row in rows])
            asked = replace(asked, said=rows, said_vectors=vectors)
        return await shard.call(answers, await self._reranked(asked, shard, until))

    async def said_by(self, user_id: str) -> list[Memory]:
        """Return the window exchanges that have no memory, newest first, each as the memory that it may become.

        Raises `ShardNotHere` if this worker does not own the user's partition.
        """
        partition = partition_of(user_id, self._partitions)
        said = self._said.by(partition, user_id)
        return await self._shards.call(partition, no_memories_of, user_id, said, self._said_rows) if said else []

    async def search_archive(self, query: Query, until: float = math.inf) -> list[SearchHit]:
        """Return the archived memories that answer the query, best first. This does not count as an access.

        `until` is as in `search`.
        """

        async def ranked(shard: ShardModel) -> list[SearchHit]:
            speakers = await shard.call(lambda one: one.archive_rows.speakers_of(query.user_id))
            if speakers is None or not query.text.strip():
                return []
            asked = await self._asked(query, speakers, shard)
            return await shard.call(archived_answers, await self._reranked(asked, shard, until, archived=True))

        return await self._shards.with_model(partition_of(query.user_id, self._partitions), ranked)

    async def _asked(self, query: Query, speakers: frozenset[str], shard: ShardModel) -> PreparedQuery:
        parts = questions(query.text)
        times = None if query.reference is None else AskedTimes.of(parts, query.reference)
        model, clauses = await shard.model(), [] if times is None else times.clauses
        vectors = await shard.embed([probe(part, speakers) for part in (*parts, *clauses)], of="question")
        scale, now = model.cosine.of(query.text), self._clock.now()
        return PreparedQuery(
            query,
            parts,
            vectors,
            scale,
            now,
            self._lifecycle,
            updates=self._updates,
            times=times,
            dense_share=model.dense_share,
            lift=model.lift_of(query.text),
        )

    async def _reranked(
        self, asked: PreparedQuery, shard: ShardModel, until: float, *, archived: bool = False
    ) -> PreparedQuery:
        """Return the query with the reranker's scores; without them if there is no reranker, or if it fails."""
        reranker, query = self._reranker, asked.query
        if reranker is None or not query.rerank:
            return asked
        texts = await shard.call(to_rerank, asked, reranker.candidates, archived=archived)
        scores = await reranker.scores(query.text, list(texts.values()), until - KEPT_SECONDS)
        if scores is None:
            return asked
        return replace(asked, reranked=Reranked(dict(zip(texts, scores, strict=True)), reranker.candidates))

    def accessed(self, user_id: str, ids: Iterable[uuid.UUID]) -> None:
        """Note an access, at the present time, to the user's memories with these ids."""
        self._accesses.note(user_id, ids, self._clock.now())

    async def tell_accesses(self) -> None:
        """Send the accesses since the last call as `touch` events, one or a few for each user.

        The events are sent together, so that a shard applies them in one transaction. Events that the broker does not
        accept now stay in the outbox and are sent with the next events.
        """
        touches = self._accesses.take()
        for event in touches:
            self._event_log.append(event)
        if touches:
            try:
                await self._event_log.deliver()
            except KafkaError as exc:
                log.warning("accesses of %d users are counted later: %s", len(touches), exc)
