"""Build a worker's HTTP API with FastAPI. It runs on the worker's own event loop. Its OpenAPI page is `/docs`."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import FastAPI, HTTPException, Response
from fastapi import Query as Parameter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ConfigDict, Field
from starlette.routing import Route

from schemas.errors import MemoryElsewhere, ShardNotHere
from schemas.fields import Timestamp
from schemas.ids import Id
from schemas.settings import Settings
from schemas.times import iso, now_ms
from streams.access.admission import Admission
from streams.doors.entrance import put_before
from streams.doors.http.accepted import Accepted, AcceptedMessages
from streams.doors.http.archive import archive_routes
from streams.doors.http.asker import Asker, sources_by
from streams.doors.http.checkpoints import checkpoint_routes
from streams.doors.http.cleanup import cleanup_routes
from streams.doors.http.consistency import Consistency, Wait, consistency_routes
from streams.doors.http.decisions import DecisionsResponse, decisions_of
from streams.doors.http.erasures import erasure_routes
from streams.doors.http.export import export_routes
from streams.doors.http.forwarding import Forwarding, retry_after
from streams.doors.http.memories import memory_routes
from streams.doors.http.messages import Given, add_messages
from streams.doors.http.notes import NewMemory, NotesResponse, ShownNote
from streams.doors.http.pages import page_routes
from streams.doors.http.partial import ShownBehind
from streams.doors.http.profile import profile_routes
from streams.doors.http.reembedding import reembedding_routes
from streams.doors.http.refusals import REFUSALS, because
from streams.doors.http.relations import relation_routes
from streams.doors.http.searching import search_routes
from streams.doors.http.sessions import Limit, session_routes
from streams.doors.http.statistics import (
    ScoresResponse,
    StatesResponse,
    TransitionsResponse,
    scores_of,
    states_of,
    transitions_of,
)
from streams.doors.http.summaries import summary_routes
from streams.doors.mem0.routes import mem0_routes
from streams.doors.ui.dashboard import add_dashboard
from streams.service import MemoryService
from streams.telemetry.metrics import labelled
from streams.telemetry.recovery_progress import seconds_left
from tables.analysts.copy import described

if TYPE_CHECKING:
    from streams.doors.mcp.endpoint import McpEndpoint

Days = Annotated[int, Parameter(ge=1, le=3650)]
At = Annotated[Timestamp | None, Parameter(description="ISO 8601 or epoch milliseconds")]


class NewSessionEnd(BaseModel):
    """The user whose session ends, and the time at which it ends."""

    model_config = ConfigDict(extra="forbid")

    user_id: Id | None = None
    timestamp: Timestamp | None = Field(default=None, description="by default now, by lifecycle.clock")


class Readiness(BaseModel):
    ready: bool
    waiting_for: list[str] = Field(description="why it is not ready")
    warnings: list[str] = Field(description="faults that do not stop the worker")
    coming_back: list[ShownBehind] = Field(description="parts of partitions that are being recovered, with progress")
    eta_seconds: float | None = Field(description="time left for the current steps; null while it is not known")


def build(service: MemoryService, forwarding: Forwarding, admission: Admission | None = None) -> FastAPI:
    """Build a worker's API. It forwards requests about users whose partitions other workers own.

    If `admission` is given, requests need a token.
    """
    settings = service.settings
    mcp = _mcp(settings)
    api = FastAPI(
        title="Siltstone",
        summary="Conversation memory",
        version="1",
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
        lifespan=mcp.lifespan if mcp else None,
    )
    if mcp is not None:
        api.routes.append(Route(mcp.path, mcp, methods=mcp.methods))
    api.exception_handler(ShardNotHere)(forwarding.to_owner)
    api.exception_handler(MemoryElsewhere)(forwarding.to_others)
    put_before(api, settings, admission, service.spans)
    if settings.http.dashboard:
        add_dashboard(api, service, forwarding, admission)
    api.include_router(page_routes(api))
    consistency = Consistency(service)

    @api.post("/v1/messages", status_code=202, tags=["conversations"])
    async def add_message(given: Given, wait: Wait, asker: Asker) -> Accepted | AcceptedMessages:
        """Produce a chat message, or a list of messages.

        A message without `timestamp` gets the current time. A message without `message_id` gets an id.

        With `wait=applied`, the response is sent when all messages are in their windows, where searches find them.
        The messages of a list must then be of one user.
        """
        return await add_messages(service, given, wait, sources_by(asker))

    @api.get(
        "/v1/sessions/{session_id:path}/decisions",
        tags=["conversations"],
        dependencies=consistency.reads,
        responses=because(404, "The worker has no data of this session"),
    )
    async def decisions(session_id: Id, user_id: Id, limit: Limit = None) -> DecisionsResponse:
        """The decision on each exchange of a session, oldest first: promoted, dropped or undecided, and the reason.

        The decisions are computed from the session's window with the worker's current settings. This changes nothing.
        """
        return await decisions_of(service, user_id, session_id, limit)

    @api.post("/v1/sessions/{session_id:path}/end", status_code=202, tags=["conversations"])
    async def end_session(
        session_id: Id, wait: Wait, end: NewSessionEnd | None = None, user_id: Id | None = None
    ) -> Accepted:
        """End a session now, or at `timestamp`. Its undecided exchanges are then decided.

        Name the user in the body or as a parameter. A later message with this session id continues the session.
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
        return await Accepted.after(service, user, event_id, wait, lambda: service.writes.add_message(user, said))

    @api.post("/v1/memories", status_code=202, tags=["memories"])
    async def remember(memory: NewMemory, wait: Wait, asker: Asker) -> Accepted:
        """Remember a text permanently, or for `ttl_seconds` if it is a short-term memory or an item.

        The memory's id is `memory_id`, or `event_id` if `memory_id` is omitted. Without `importance`, the worker
        computes the importance from the text, except for an item.
        """
        for older in memory.supersedes:
            await service.one(memory.user_id, older)
        written = memory.model_copy(update={"sources": sources_by(asker)})
        return await Accepted.written(service, service.importance.weighed(written), wait)

    for routes in (
        session_routes,
        search_routes,
        memory_routes,
        profile_routes,
        erasure_routes,
        relation_routes,
        archive_routes,
        cleanup_routes,
        checkpoint_routes,
        reembedding_routes,
        summary_routes,
        export_routes,
        consistency_routes,
    ):
        api.include_router(routes(service))
    api.include_router(mem0_routes(service, forwarding))

    @api.get("/v1/sessions/{session_id:path}/memories", tags=["memories"], dependencies=consistency.reads)
    async def notes(session_id: Id, user_id: Id) -> NotesResponse:
        """The session's short-term memories, oldest first, without expired ones."""
        noted = [ShownNote.of(note) for note in service.sessions.notes(user_id, session_id)]
        return NotesResponse(session_id=session_id, user_id=user_id, memories=noted)

    @api.get("/v1/stats/states", tags=["statistics"])
    async def states(at: At = None, days: Days | None = None) -> StatesResponse:
        """The number and percentage of memories in each state, now or at the time `at`. This changes nothing.

        With `days`, the response also has the numbers at the end of each of the last `days` UTC days, including
        today. They are computed from the recorded changes of state. docs/analytics.md describes the limits of this
        record.
        """
        async with service.users.own_shards():
            return await states_of(service, at or await service.moment(), days)

    @api.get("/v1/stats/transitions", tags=["statistics"])
    async def transitions(days: Days = 30, at: At = None) -> TransitionsResponse:
        """The changes of state in the last `days` UTC days, including today.

        `daily` counts them by day and by pair of states. `rates` has the rate of each pair over the whole period.
        """
        async with service.users.own_shards():
            return await transitions_of(service, at or await service.moment(), days)

    @api.get("/v1/stats/scores", tags=["statistics"])
    async def scores(at: At = None) -> ScoresResponse:
        """The histogram of the memories' scores, now or at the time `at`, with its clusters and outliers."""
        async with service.users.own_shards():
            return await scores_of(service, at or await service.moment())

    @api.get("/v1/stats/pipeline", tags=["statistics"])
    async def pipeline() -> dict[str, Any]:
        """This worker's counters since it started, its lag, and the partitions that are being recovered."""
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
        """Make the analysts' copy, and respond when it is in place.

        During a backlog of messages, the copy waits, but at most for `long_term.intake_first_seconds`.
        """
        made = await service.snapshot()
        return {**described(made, settings.data_dir), "at": iso(made.at)}

    @api.get("/healthz", tags=["operations"])
    async def healthz() -> dict[str, str]:
        """Respond 200 while the worker's event loop runs."""
        return {"status": "ok"}

    @api.get("/readyz", tags=["operations"])
    async def readyz(response: Response) -> Readiness:
        """Respond 200 when tables are recovered, the model is loaded, the shards are open and offsets are committed.

        Otherwise respond 503 with the reasons. For each partition that is being recovered, the response has the
        current step, its progress and the time left. `warnings` names faults that do not stop the worker.
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


def _mcp(settings: Settings) -> McpEndpoint | None:
    """Return the MCP endpoint, or None if it is disabled.

    The endpoint is imported inside this function, because the import takes half a second. A worker without the
    endpoint starts without this delay.
    """
    if not settings.http.mcp:
        return None
    from streams.doors.mcp.endpoint import McpEndpoint

    return McpEndpoint()
