"""The HTTP API (FastAPI, on the worker's own event loop); its OpenAPI page is at `/docs`."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import FastAPI, Response
from fastapi import Query as Parameter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from schemas.errors import BrokerUnavailable, NotReady, ShardNotHere
from schemas.events import LongTermEvent, SummaryRequest
from schemas.memories import SearchHit, State
from schemas.messages import ChatMessage, Id, Timestamp, iso
from schemas.topics import key_of
from streams.clock import now_ms
from streams.metrics import labelled
from streams.recall import Query, prompt_text
from streams.rules.filtering import Filter
from streams.rules.lifecycle import wanted_states
from streams.web.archive import archive_routes
from streams.web.cleanup import cleanup_routes
from streams.web.decisions import DecisionsResponse, decisions_of
from streams.web.erasures import erasure_routes
from streams.web.failures import answer_failures
from streams.web.memories import memory_routes
from streams.web.notes import NewMemory, NotesResponse, ShownNote, notes_of
from streams.web.owned import WAIT_SECONDS, OwnedMemories
from streams.web.reembedding import reembedding_routes
from streams.web.relations import relation_routes
from streams.web.statistics import (
    ScoresResponse,
    StatesResponse,
    TransitionsResponse,
    scores_of,
    states_of,
    transitions_of,
)
from streams.web.summaries import summary_routes
from tables.analytics import described
from tables.short_term import unexpired

if TYPE_CHECKING:
    from streams.app import Siltstone

Limit = Annotated[int | None, Parameter(ge=1, le=1000)]
Days = Annotated[int, Parameter(ge=1, le=3650)]
At = Annotated[Timestamp | None, Parameter(description="ISO 8601 or epoch milliseconds")]


class NewMessage(ChatMessage):
    """A chat message whose time is now where it names none."""

    timestamp: Timestamp = Field(
        default_factory=now_ms,
        validation_alias=AliasChoices("timestamp", "created_at"),
    )


class SearchRequest(BaseModel):
    """A question to one user's memories. camelCase spellings are taken as well."""

    model_config = ConfigDict(populate_by_name=True, extra="forbid")

    user_id: Annotated[Id, Field(validation_alias=AliasChoices("user_id", "userId"))]
    query: Annotated[str, Field(min_length=1, max_length=32_768)]
    top_k: Annotated[int | None, Field(ge=1, le=1000, validation_alias=AliasChoices("top_k", "topK", "limit"))] = None
    include_cold: Annotated[bool, Field(validation_alias=AliasChoices("include_cold", "includeCold"))] = False
    include_all: Annotated[bool, Field(validation_alias=AliasChoices("include_all", "includeAll"))] = False
    state: State | None = None
    min_relevance: Annotated[
        float, Field(ge=0, le=1, validation_alias=AliasChoices("min_relevance", "minRelevance"))
    ] = 0
    filters: list[str] | dict[str, Any] = Field(
        default=[], description='["importance:gte:80"] or {"importance": {"gte": 80}}: applied before ranking'
    )
    explain: bool = False

    @field_validator("filters")
    @classmethod
    def _readable(cls, given: list[str] | dict[str, Any]) -> list[str] | dict[str, Any]:
        Filter.all_of(given)
        return given


class SearchResponse(BaseModel):
    results: list[SearchHit]


class Accepted(BaseModel):
    """A write is in the log; it takes effect within moments."""

    event_id: str
    topic: str
    partition: int
    offset: int


class ShownMessage(BaseModel):
    message_id: str
    role: str
    content: str
    timestamp: str
    name: str | None
    emotion: str | None


class ShownExchange(BaseModel):
    messages: list[ShownMessage]
    started_at: str
    ended_at: str
    expires_at: str
    open: bool = Field(description="whether it can still go on")


class ExchangesResponse(BaseModel):
    session_id: str
    user_id: str
    exchanges: list[ShownExchange]


class ContextResponse(ExchangesResponse):
    notes: list[ShownNote] = Field(description="the session's short-term memories, oldest first")
    memories: list[SearchHit]
    prompt: str = Field(description="memories, notes and exchanges as one text, ready for a prompt")


def build(worker: Siltstone) -> FastAPI:
    """The API of a worker."""
    settings = worker.settings
    api = FastAPI(title="Siltstone", summary="Conversation memory", version="1")
    owned = OwnedMemories(worker, partial(_partition_here, worker))
    api.exception_handler(ShardNotHere)(worker.forwarding.to_owner)
    answer_failures(api)

    @api.post("/v1/messages", status_code=202, tags=["conversations"])
    async def add_message(message: NewMessage) -> Accepted:
        """Produce a chat message; without `timestamp` it is from now, without `message_id` it gets one."""
        event_id = message.message_id or str(uuid.uuid4())
        fields = message.model_dump(mode="json", exclude_none=True)
        fields |= {"message_id": event_id, "timestamp": iso(message.timestamp)}
        return await _produce(worker, worker.topics.conversations, message.user_id, event_id, orjson.dumps(fields))

    @api.get("/v1/sessions/{session_id:path}/exchanges", tags=["conversations"])
    async def exchanges(session_id: Id, user_id: Id, limit: Limit = None) -> ExchangesResponse:
        """The newest exchanges of a session's short-term window, oldest first; expired ones never appear."""
        return ExchangesResponse(
            session_id=session_id, user_id=user_id, exchanges=_window(worker, user_id, session_id, limit)
        )

    @api.get(
        "/v1/sessions/{session_id:path}/decisions",
        tags=["conversations"],
        responses={404: {"description": "The worker holds nothing of this session"}},
    )
    async def decisions(session_id: Id, user_id: Id, limit: Limit = None) -> DecisionsResponse:
        """What became of each exchange of a session, oldest first: promoted, dropped or undecided, and why.

        It is worked out from the window, under the worker's settings as they are now, and changes nothing.
        """
        async with asyncio.timeout(WAIT_SECONDS):
            return await decisions_of(worker, _partition_here(worker, user_id), user_id, session_id, limit)

    @api.post("/v1/memories", status_code=202, tags=["memories"])
    async def remember(memory: NewMemory) -> Accepted:
        """Have a text remembered: for good, or for `ttl_seconds` with its session.

        The memory's id is `memory_id`, or the event's where that is not given.
        """
        for older in memory.supersedes:
            await owned.one(memory.user_id, older)
        return await write(memory)

    async def write(event: LongTermEvent) -> Accepted:
        value = event.model_dump_json(exclude_none=True).encode()
        return await _produce(worker, worker.topics.long_term, event.user_id, str(event.event_id), value)

    api.include_router(memory_routes(owned, write))
    api.include_router(erasure_routes(owned))
    api.include_router(relation_routes(owned, write))
    api.include_router(archive_routes(owned, write))
    api.include_router(cleanup_routes(owned))
    api.include_router(reembedding_routes(worker))

    async def request(summary: SummaryRequest) -> Accepted:
        value = summary.model_dump_json().encode()
        return await _produce(worker, worker.topics.summary_requests, summary.user_id, str(summary.run_id), value)

    api.include_router(summary_routes(worker, owned.partition_here, request))

    @api.get("/v1/sessions/{session_id:path}/memories", tags=["memories"])
    async def notes(session_id: Id, user_id: Id) -> NotesResponse:
        """The session's short-term memories, oldest first; expired ones never appear."""
        noted = notes_of(worker, _partition_here(worker, user_id), user_id, session_id)
        return NotesResponse(session_id=session_id, user_id=user_id, memories=[ShownNote.of(note) for note in noted])

    @api.post("/v1/search", tags=["memories"])
    async def search(request: SearchRequest) -> SearchResponse:
        """The user's memories that answer the query, most relevant first; each counts as accessed."""
        states = wanted_states(
            state=request.state, include_all=request.include_all, include_cold=request.include_cold
        )
        query = Query(
            request.user_id,
            request.query,
            request.top_k or settings.long_term.top_k,
            states,
            request.explain,
            replaced=request.include_all and request.state is None,
            min_relevance=request.min_relevance,
            filters=Filter.all_of(request.filters),
        )
        return SearchResponse(results=await _search(owned, query))

    @api.get("/v1/context", tags=["conversations"])
    async def context(user_id: Id, session_id: Id, q: str = "", limit: Limit = None) -> ContextResponse:
        """What an assistant needs before it answers: newest exchanges, notes, top memories, one prompt text.

        Without `q`, what the user said last is the query.
        """
        shown = _window(worker, user_id, session_id, limit)
        asked = q or next((m.content for e in reversed(shown) for m in reversed(e.messages) if m.role == "user"), "")
        hits: list[SearchHit] = []
        if asked and settings.long_term.context_memories:
            hits = await _search(owned, Query(user_id, asked, settings.long_term.context_memories, wanted_states()))
            shown = _window(worker, user_id, session_id, limit)  # what was forgotten meanwhile is not shown
        noted = notes_of(worker, _partition_here(worker, user_id), user_id, session_id)
        lines = [f"{m.name or m.role}: {m.content}" for e in shown for m in e.messages]
        return ContextResponse(
            session_id=session_id,
            user_id=user_id,
            exchanges=shown,
            notes=[ShownNote.of(note) for note in noted],
            memories=hits,
            prompt=prompt_text(lines, hits, noted),
        )

    @api.get("/v1/stats/states", tags=["statistics"])
    async def states(at: At = None, days: Days | None = None) -> StatesResponse:
        """Memories by state, with percentages, now or as of `at`; nothing is changed by asking.

        With `days`, also at the end of each of the last `days` days (UTC, with today), from the recorded changes of
        state: docs/analytics.md says what those cannot know.
        """
        async with _own_shards(worker):
            return await states_of(worker, at or await worker.shards.moment(worker.clock), days)

    @api.get("/v1/stats/transitions", tags=["statistics"])
    async def transitions(days: Days = 30, at: At = None) -> TransitionsResponse:
        """Changes of state on the last `days` days (UTC, with today): by day and pair, and each pair's rate."""
        async with _own_shards(worker):
            return await transitions_of(worker, at or await worker.shards.moment(worker.clock), days)

    @api.get("/v1/stats/scores", tags=["statistics"])
    async def scores(at: At = None) -> ScoresResponse:
        """The histogram of the scores, now or as of `at`, with the clusters and the outliers in it."""
        async with _own_shards(worker):
            return await scores_of(worker, at or await worker.shards.moment(worker.clock))

    @api.get("/v1/stats/pipeline", tags=["statistics"])
    async def pipeline() -> dict[str, Any]:
        """What this worker has done since it started, and what waits."""
        metrics = worker.metrics
        decisions = labelled(metrics.decisions)
        return {
            "messages": sum(labelled(metrics.messages).values()),
            "exchanges": sum(labelled(metrics.exchanges).values()),
            "decisions": {
                outcome: {reason: n for (kind, reason), n in decisions.items() if kind == outcome}
                for outcome in ("promoted", "dropped")
            },
            "memories": {effect: n for (effect,), n in labelled(metrics.memories).items()},
            "notes": {effect: n for (effect,), n in labelled(metrics.notes).items()},
            "summaries": {outcome: n for (outcome,), n in labelled(metrics.summaries).items()},
            "dead_letters": sum(labelled(metrics.dead_letters).values()),
            "lost_records": {topic: n for (topic,), n in labelled(metrics.lost_records).items()},
            "lag": worker.hot.lag() if worker.recovered else {},
        }

    @api.post("/v1/snapshot", tags=["statistics"])
    async def snapshot() -> dict[str, Any]:
        """Make the analysts' copy now, and answer when it is in its place; a backlog of messages goes first."""
        try:
            made = await worker.analytics.snapshot()
        except ShardNotHere as exc:
            raise NotReady(f"partitions are moving ({exc}); ask again") from exc
        return {**described(made), "at": iso(made.at)}

    @api.get("/healthz", tags=["operations"])
    async def healthz() -> dict[str, str]:
        """The worker's event loop runs."""
        return {"status": "ok"}

    @api.get("/readyz", tags=["operations"])
    async def readyz(response: Response) -> dict[str, Any]:
        """200 when tables are recovered, the model is loaded and the shards are open; else 503 and why not."""
        reasons = worker.not_ready()
        response.status_code = 503 if reasons else 200
        return {"ready": not reasons, "waiting_for": reasons}

    @api.get("/metrics", tags=["operations"], response_class=Response)
    async def metrics() -> Response:
        """Prometheus metrics."""
        return Response(generate_latest(worker.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return api


async def _produce(worker: Siltstone, topic: str, user_id: str, event_id: str, value: bytes) -> Accepted:
    """Write into the log; the answer says where it lies. Raises `BrokerUnavailable` before a broker was found."""
    if not worker.hot.outbox.connected:
        raise BrokerUnavailable(worker.settings.kafka.bootstrap_servers)
    async with asyncio.timeout(WAIT_SECONDS):
        sent = await worker.hot.outbox.produce(topic, value, key=key_of(user_id))
        record = await asyncio.shield(sent)
    return Accepted(event_id=event_id, topic=record.topic, partition=record.partition, offset=record.offset)


async def _search(owned: OwnedMemories, query: Query) -> list[SearchHit]:
    async with asyncio.timeout(WAIT_SECONDS):
        await owned.whole(query.user_id)
        return await owned.worker.recall.search(query)


@asynccontextmanager
async def _own_shards(worker: Siltstone) -> AsyncIterator[None]:
    """Ask this worker's shards, bounded in time; nobody counts them while it is not known which they are.

    Where a shard moves meanwhile nobody knows what the answer would cover; another worker's is of its own shards.
    """
    if not worker.recovered:
        raise NotReady(f"{'; '.join(worker.not_ready())}; ask again")
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            yield
    except ShardNotHere as exc:
        raise NotReady(f"partitions are moving ({exc}); ask again") from exc


def _partition_here(worker: Siltstone, user_id: str) -> int:
    """The user's partition. Raises `ShardNotHere` where it is not this worker's, or not recovered yet."""
    partition = worker.partition_of(user_id)
    if partition not in worker.shards.partitions() or not worker.recovered:
        raise ShardNotHere(partition, "its partition is on another worker, or moving; ask again")
    return partition


def _window(worker: Siltstone, user_id: str, session_id: str, limit: int | None) -> list[ShownExchange]:
    partition = _partition_here(worker, user_id)
    memory = worker.settings.memory
    session = worker.windows.session(partition, user_id, session_id)
    exchanges = worker.windows.window(partition, session)
    if session.open:
        exchanges.append(session.open_exchange)
    newest = unexpired(exchanges, worker.clock.now(), memory.ttl_seconds)[-(limit or memory.context_turns) :]
    return [
        ShownExchange(
            messages=[
                ShownMessage(
                    message_id=message.message_id,
                    role=message.role,
                    content=message.content,
                    timestamp=iso(message.timestamp),
                    name=message.name,
                    emotion=message.emotion,
                )
                for message in exchange.messages
            ],
            started_at=iso(exchange.started_at),
            ended_at=iso(exchange.ended_at),
            expires_at=iso(exchange.ended_at + memory.ttl_seconds * 1000),
            open=bool(session.open) and exchange.seq == session.next,
        )
        for exchange in newest
    ]
