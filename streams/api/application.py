"""The HTTP API (FastAPI, on the worker's own event loop); its OpenAPI page is at `/docs`."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, HTTPException, Response
from fastapi import Query as Parameter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from schemas.errors import ShardNotHere
from schemas.fields import Timestamp
from schemas.ids import Id
from schemas.lifecycle import wanted_states
from schemas.memories import SHORT_TERM, SearchHit, ShownState, State
from schemas.times import iso
from streams.admission.admission import Admission
from streams.api.accepted import Accepted, AcceptedMessages
from streams.api.archive import archive_routes
from streams.api.checkpoints import checkpoint_routes
from streams.api.cleanup import cleanup_routes
from streams.api.consistency import AtLeast, Consistency, Wait, consistency_routes
from streams.api.decisions import DecisionsResponse, decisions_of
from streams.api.erasures import erasure_routes
from streams.api.failures import answer_failures
from streams.api.forwarding import Forwarding, retry_after
from streams.api.guard import Guard
from streams.api.memories import memory_routes
from streams.api.messages import Given, add_messages
from streams.api.notes import NewMemory, NotesResponse, ShownNote
from streams.api.partial import MEANING, Allowed, MayBePartial, Partial, ShownBehind, said
from streams.api.policies import route_of
from streams.api.reembedding import reembedding_routes
from streams.api.relations import relation_routes
from streams.api.statistics import (
    ScoresResponse,
    StatesResponse,
    TransitionsResponse,
    scores_of,
    states_of,
    transitions_of,
)
from streams.api.summaries import summary_routes
from streams.clock import now_ms
from streams.coming_back import seconds_left
from streams.metrics import labelled
from streams.recall import Query
from streams.rules.filtering import Filter
from streams.service import MemoryService, WindowExchange
from tables.analysts.copy import described

Limit = Annotated[int | None, Parameter(ge=1, le=1000)]
Days = Annotated[int, Parameter(ge=1, le=3650)]
At = Annotated[Timestamp | None, Parameter(description="ISO 8601 or epoch milliseconds")]


class NewSessionEnd(BaseModel):
    """Whose session is over, and when."""

    model_config = ConfigDict(extra="forbid")

    user_id: Id | None = None
    timestamp: Timestamp | None = Field(default=None, description="now, by lifecycle.clock, where it is not given")


class SearchRequest(BaseModel):
    """A question to one user's memories. camelCase spellings are taken as well."""

    model_config = ConfigDict(populate_by_name=True, extra="forbid")

    user_id: Annotated[Id, Field(validation_alias=AliasChoices("user_id", "userId"))]
    query: Annotated[str, Field(min_length=1, max_length=32_768)]
    top_k: Annotated[int | None, Field(ge=1, le=1000, validation_alias=AliasChoices("top_k", "topK", "limit"))] = None
    include_cold: Annotated[bool, Field(validation_alias=AliasChoices("include_cold", "includeCold"))] = False
    include_all: Annotated[bool, Field(validation_alias=AliasChoices("include_all", "includeAll"))] = False
    state: ShownState | None = None
    include_short_term: Annotated[
        bool,
        Field(
            validation_alias=AliasChoices("include_short_term", "includeShortTerm"),
            description="also what the user's short-term windows hold and is no memory; a `state` decides by itself",
        ),
    ] = True
    min_relevance: Annotated[
        float, Field(ge=0, le=1, validation_alias=AliasChoices("min_relevance", "minRelevance"))
    ] = 0
    filters: list[str] | dict[str, Any] = Field(
        default=[], description='["importance:gte:80"] or {"importance": {"gte": 80}}: applied before ranking'
    )
    explain: bool = False
    touch: bool = Field(default=True, description="false: being found counts as no access (evaluation, prefetch)")
    partial: Allowed = Field(default="never", description=f"{MEANING}; also as a parameter")

    @field_validator("filters")
    @classmethod
    def _readable(cls, given: list[str] | dict[str, Any]) -> list[str] | dict[str, Any]:
        Filter.all_of(given)
        return given


class SearchResponse(MayBePartial):
    results: list[SearchHit]
    better_elsewhere: dict[State, int] = Field(
        description="by state, how many memories in states that were not asked for are more relevant than all of the "
        "results, and relevant enough to be shown (0.3); no more than top_k are counted"
    )


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


class Readiness(BaseModel):
    ready: bool
    waiting_for: list[str] = Field(description="why it is not ready")
    warnings: list[str] = Field(description="what is amiss, though the worker works")
    coming_back: list[ShownBehind] = Field(description="what of which partition is not back yet, and how far it is")
    eta_seconds: float | None = Field(description="until what is done now is done; null while that is not known")


class ContextResponse(ExchangesResponse, MayBePartial):
    notes: list[ShownNote] = Field(description="the session's short-term memories, oldest first")
    memories: list[SearchHit] = Field(description="with what was said elsewhere or earlier, and is no memory")
    prompt: str = Field(description="memories, notes and exchanges as one text, ready for a prompt")


def build(service: MemoryService, forwarding: Forwarding, admission: Admission | None = None) -> FastAPI:
    """The API of a worker's memory; what is another worker's is forwarded. With an admission, who asks is proven."""
    settings = service.settings
    api = FastAPI(title="Siltstone", summary="Conversation memory", version="1")
    api.exception_handler(ShardNotHere)(forwarding.to_owner)
    answer_failures(api)
    if admission is not None:
        api.add_middleware(Guard, admission=admission, open_probes=settings.access.open_probes)
    if service.spans.on:  # outermost: what is refused is in a span as well
        api.add_middleware(service.spans.serving, route_of=route_of)
    consistency = Consistency(service)

    @api.post("/v1/messages", status_code=202, tags=["conversations"])
    async def add_message(given: Given, wait: Wait) -> Accepted | AcceptedMessages:
        """Produce a chat message, or a list; without `timestamp` it is from now, without `message_id` it gets one.

        With `wait=applied` it is answered when the message is in its window, where searches find it; of a list, when
        all are. Then the list is to be one user's.
        """
        return await add_messages(service, given, wait)

    @api.get("/v1/sessions/{session_id:path}/exchanges", tags=["conversations"], dependencies=consistency.reads)
    async def exchanges(session_id: Id, user_id: Id, limit: Limit = None) -> ExchangesResponse:
        """The newest exchanges of a session's short-term window, oldest first; expired ones never appear."""
        shown = [_shown(one, settings.memory.ttl_seconds) for one in service.window(user_id, session_id, limit)]
        return ExchangesResponse(session_id=session_id, user_id=user_id, exchanges=shown)

    @api.get(
        "/v1/sessions/{session_id:path}/decisions",
        tags=["conversations"],
        dependencies=consistency.reads,
        responses={404: {"description": "The worker holds nothing of this session"}},
    )
    async def decisions(session_id: Id, user_id: Id, limit: Limit = None) -> DecisionsResponse:
        """What became of each exchange of a session, oldest first: promoted, dropped or undecided, and why.

        It is worked out from the window, under the worker's settings as they are now, and changes nothing.
        """
        return await decisions_of(service, user_id, session_id, limit)

    @api.post("/v1/sessions/{session_id:path}/end", status_code=202, tags=["conversations"])
    async def end_session(
        session_id: Id, wait: Wait, end: NewSessionEnd | None = None, user_id: Id | None = None
    ) -> Accepted:
        """Say that a session is over, now or at `timestamp`: what is undecided of it is decided on.

        The user is named in the body, or as a parameter. The session goes on where something more is said in it.
        """
        named = {one for one in (user_id, end.user_id if end else None) if one is not None}
        if len(named) != 1:
            raise HTTPException(422, "user_id: name the user whose session it is, in the body or as a parameter")
        event_id, (user,) = str(uuid.uuid4()), named
        record = {
            "type": "session_end",
            "user_id": user,
            "session_id": session_id,
            "timestamp": iso(end.timestamp if end and end.timestamp is not None else service.clock.now() or now_ms()),
            "event_id": event_id,
        }
        said = orjson.dumps(record)
        return await Accepted.after(service, user, event_id, wait, lambda: service.add_message(user, said))

    @api.post("/v1/memories", status_code=202, tags=["memories"])
    async def remember(memory: NewMemory, wait: Wait) -> Accepted:
        """Have a text remembered: for good, or for `ttl_seconds` with its session.

        The memory's id is `memory_id`, or the event's where that is not given; its importance, without one, is that
        of the text.
        """
        for older in memory.supersedes:
            await service.one(memory.user_id, older)
        return await Accepted.written(service, service.importance.weighed(memory), wait)

    for routes in (
        memory_routes,
        erasure_routes,
        relation_routes,
        archive_routes,
        cleanup_routes,
        checkpoint_routes,
        reembedding_routes,
        summary_routes,
        consistency_routes,
    ):
        api.include_router(routes(service))

    @api.get("/v1/sessions/{session_id:path}/memories", tags=["memories"], dependencies=consistency.reads)
    async def notes(session_id: Id, user_id: Id) -> NotesResponse:
        """The session's short-term memories, oldest first; expired ones never appear."""
        noted = [ShownNote.of(note) for note in service.notes(user_id, session_id)]
        return NotesResponse(session_id=session_id, user_id=user_id, memories=noted)

    @api.post("/v1/search", tags=["memories"])
    async def search(request: SearchRequest, allowed: Partial, at_least: AtLeast) -> SearchResponse:
        """The user's memories that answer the query, most relevant first, and what was said and is no memory.

        What is said is found at once, in all sessions, until it expires: an exchange is in state `short_term`, has
        the id that its memory would have, and is never beside that memory. A question does not find itself. A memory
        that is at least as relevant as `lifecycle.access_min_relevance` counts as accessed, unless `touch` is false.

        While the user's partition comes back to its worker, this waits, and is 503 where that is long. With
        `partial=allow` it answers from what is there already: `partial` and `behind` say what is not.
        """
        allowed = allowed or request.partial == "allow"
        wanted = request.state
        states = wanted_states(state=wanted, include_all=request.include_all, include_cold=request.include_cold)
        query = Query(
            request.user_id,
            request.query,
            request.top_k or settings.long_term.top_k,
            states,
            request.explain,
            replaced=request.include_all and wanted is None,
            min_relevance=request.min_relevance,
            filters=Filter.all_of(request.filters),
            touch=request.touch,
            short_term=request.include_short_term if wanted is None else wanted == SHORT_TERM,
        )
        await consistency.reached(request.user_id, at_least)
        found = await service.search(query, allowed)
        return SearchResponse(
            results=list(found), better_elsewhere=dict(found.elsewhere), **said(allowed, found.behind)
        )

    @api.get("/v1/context", tags=["conversations"], dependencies=consistency.reads)
    async def context(
        user_id: Id,
        session_id: Id,
        allowed: Partial,
        q: str = "",
        limit: Limit = None,
        touch: bool = True,
        include_short_term: bool = True,
    ) -> ContextResponse:
        """What an assistant needs before it answers: newest exchanges, notes, top memories, one prompt text.

        Without `q`, what the user said last is the query. Among the memories is what was said in any session and is
        none (state `short_term`), but for the exchanges that are shown; the prompt says nothing twice. Memories that
        are relevant enough count as accessed, unless `touch` is false. With `partial=allow`, while the user's
        partition comes back to its worker, it is made of what is there already: without exchanges and notes while
        windows are read back.
        """
        found = await service.context(user_id, session_id, q, limit, touch, include_short_term, allowed)
        return ContextResponse(
            session_id=session_id,
            user_id=user_id,
            exchanges=[_shown(one, settings.memory.ttl_seconds) for one in found.exchanges],
            notes=[ShownNote.of(note) for note in found.notes],
            memories=found.hits,
            prompt=found.prompt,
            **said(allowed, found.behind),
        )

    @api.get("/v1/stats/states", tags=["statistics"])
    async def states(at: At = None, days: Days | None = None) -> StatesResponse:
        """Memories by state, with percentages, now or as of `at`; nothing is changed by asking.

        With `days`, also at the end of each of the last `days` days (UTC, with today), from the recorded changes of
        state: docs/analytics.md says what those cannot know.
        """
        async with service.own_shards():
            return await states_of(service, at or await service.moment(), days)

    @api.get("/v1/stats/transitions", tags=["statistics"])
    async def transitions(days: Days = 30, at: At = None) -> TransitionsResponse:
        """Changes of state on the last `days` days (UTC, with today): by day and pair, and each pair's rate."""
        async with service.own_shards():
            return await transitions_of(service, at or await service.moment(), days)

    @api.get("/v1/stats/scores", tags=["statistics"])
    async def scores(at: At = None) -> ScoresResponse:
        """The histogram of the scores, now or as of `at`, with the clusters and the outliers in it."""
        async with service.own_shards():
            return await scores_of(service, at or await service.moment())

    @api.get("/v1/stats/pipeline", tags=["statistics"])
    async def pipeline() -> dict[str, Any]:
        """What this worker has done since it started, and what waits."""
        metrics = service.metrics
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
            "emptied_changelogs": {topic: n for (topic,), n in labelled(metrics.emptied_changelogs).items()},
            "lag": service.health.lag() if service.health.recovered else {},
            "coming_back": [one.model_dump() for one in ShownBehind.each(service.health.behind())],
        }

    @api.post("/v1/snapshot", tags=["statistics"])
    async def snapshot() -> dict[str, Any]:
        """Make the analysts' copy now, and answer when it is in its place; a backlog of messages goes first."""
        made = await service.snapshot()
        return {**described(made), "at": iso(made.at)}

    @api.get("/healthz", tags=["operations"])
    async def healthz() -> dict[str, str]:
        """The worker's event loop runs."""
        return {"status": "ok"}

    @api.get("/readyz", tags=["operations"])
    async def readyz(response: Response) -> Readiness:
        """200 when tables are recovered, the model is loaded, the shards are open and offsets are committed.

        Else 503 and why not; and for each partition that is on its way back, what is done for it, how far that is,
        and how long it will take. Warnings are of what is amiss while the worker works.
        """
        reasons, behind = service.health.not_ready(), service.health.behind()
        left = seconds_left(behind)
        if reasons:
            response.status_code = 503
            response.headers["Retry-After"] = retry_after(left or 1.0)
        return Readiness(
            ready=not reasons,
            waiting_for=reasons,
            warnings=service.health.warnings(),
            coming_back=ShownBehind.each(behind),
            eta_seconds=left,
        )

    @api.get("/metrics", tags=["operations"], response_class=Response)
    async def metrics() -> Response:
        """Prometheus metrics."""
        service.metrics.behind(service.health.behind())
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return api


def _shown(one: WindowExchange, ttl_seconds: int) -> ShownExchange:
    return ShownExchange(
        messages=[
            ShownMessage(
                message_id=message.message_id,
                role=message.role,
                content=message.content,
                timestamp=iso(message.timestamp),
                name=message.name,
                emotion=message.emotion,
            )
            for message in one.exchange.messages
        ],
        started_at=iso(one.exchange.started_at),
        ended_at=iso(one.exchange.ended_at),
        expires_at=iso(one.exchange.ended_at + ttl_seconds * 1000),
        open=one.open,
    )
