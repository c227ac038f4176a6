"""Routes that return a session's short-term window, and the context that an assistant needs before it answers."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, HTTPException
from fastapi import Query as Parameter
from pydantic import BaseModel, Field

from schemas.ids import Id
from schemas.memories import SearchHit
from schemas.times import iso
from streams.doors.http.consistency import Consistency
from streams.doors.http.notes import ShownNote
from streams.doors.http.partial import MayBePartial, Partial, said
from streams.doors.http.profile import ShownProfile
from streams.doors.http.reference import GivenAsOf, GivenDate, GivenZone, asked_moment, reference_of
from streams.intake.user_sessions import WindowExchange
from streams.recall.context import LEAST_TOKENS, MOST_TOKENS, ContextQuery
from streams.service import MemoryService

Limit = Annotated[int | None, Parameter(ge=1, le=1000)]


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
    open: bool = Field(description="whether messages can still be added to it")


class ExchangesResponse(BaseModel):
    session_id: str
    user_id: str
    exchanges: list[ShownExchange]


class ShownLeftOut(BaseModel):
    memories: int
    notes: int
    exchanges: int


class ContextResponse(ExchangesResponse, MayBePartial):
    notes: list[ShownNote] = Field(description="the session's short-term memories, oldest first")
    memories: list[SearchHit] = Field(
        description="top memories, and exchanges outside of `exchanges` that are not memories; with `max_tokens`, "
        "pinned ones first"
    )
    prompt: str = Field(description="memories, notes and exchanges as one text, ready for a prompt")
    prompt_tokens: int = Field(description="the estimated number of tokens of the prompt")
    left_out: ShownLeftOut = Field(description="what matches, but does not fit into `max_tokens`")
    reference_date: date | None = Field(
        description="the user's day from which the prompt is dated; null without dates"
    )
    profile: ShownProfile | None = Field(description="who the user is; null without `profile=true`")


def session_routes(service: MemoryService) -> APIRouter:
    """Return the routes `/v1/context` and `/v1/sessions/…/exchanges`."""
    api = APIRouter()
    reads, settings = Consistency(service).reads, service.settings

    @api.get("/v1/sessions/{session_id:path}/exchanges", tags=["conversations"], dependencies=reads)
    async def exchanges(session_id: Id, user_id: Id, limit: Limit = None) -> ExchangesResponse:
        """The newest exchanges of a session's short-term window, oldest first, without expired ones."""
        shown = [
            _shown(one, settings.memory.ttl_seconds) for one in service.sessions.window(user_id, session_id, limit)
        ]
        return ExchangesResponse(session_id=session_id, user_id=user_id, exchanges=shown)

    @api.get("/v1/context", tags=["conversations"], dependencies=reads)
    async def context(
        user_id: Id,
        session_id: Id,
        allowed: Partial,
        q: str = "",
        limit: Limit = None,
        memories: Annotated[
            int | None,
            Parameter(
                ge=0,
                le=1000,
                description="maximum number of memories; default: 3, or with `max_tokens` all that match and fit",
            ),
        ] = None,
        max_tokens: Annotated[
            int | None,
            Parameter(
                ge=LEAST_TOKENS, le=MOST_TOKENS, description="maximum length of the prompt, in estimated tokens"
            ),
        ] = None,
        touch: bool = True,
        include_short_term: bool = True,
        reference_date: GivenDate = None,
        timezone: GivenZone = None,
        as_of: GivenAsOf = None,
        profile: Annotated[bool, Parameter(description="begin the prompt with the user's profile")] = False,
    ) -> ContextResponse:
        """The context that an assistant needs before it answers: newest exchanges, notes, top memories, and a prompt.

        Without `q`, the query is the user's last message. `memories` also has exchanges of any session that are not
        memories (state `short_term`), except those in `exchanges`. The prompt repeats nothing. Memories that are
        relevant enough count as accessed, unless `touch` is false. The prompt begins with the day, and each memory
        has its date and age, unless `recall.dates` is off.

        With `as_of`, the memories are those that held at that time.

        With `max_tokens`, the prompt has the notes, the newest exchanges (at most half of the rest), and as many
        memories as fit, pinned ones first, then the most relevant. Nothing is cut; `left_out` counts the rest.

        With `profile=true`, the prompt begins with who the user is, in at most 300 tokens, and with `max_tokens` at
        most a third of these. It is reworded (`recall.profile_by_model`) only if this is ready: a context does not
        wait for a model.

        With `partial=allow`, the response does not wait for the recovery of the user's partition: it has the data
        that is already recovered. While windows are being recovered, it has no exchanges and no notes.
        """
        if profile and as_of is not None:
            raise HTTPException(422, "profile: tells who the user is now: give either profile or as_of")
        asked = ContextQuery(
            user_id=user_id,
            session_id=session_id,
            text=q,
            exchanges=limit,
            memories=memories,
            max_tokens=max_tokens,
            touch=touch,
            short_term=include_short_term,
            partial=allowed,
            reference=(reference := reference_of(service, reference_date, timezone)),
            as_of=asked_moment(as_of, reference.zone),
            profile=profile,
        )
        found = await service.context(asked)
        return ContextResponse(
            session_id=session_id,
            user_id=user_id,
            exchanges=[_shown(one, settings.memory.ttl_seconds) for one in found.exchanges],
            notes=[ShownNote.of(note) for note in found.notes],
            memories=list(found.hits),
            prompt=found.prompt,
            prompt_tokens=found.tokens,
            left_out=ShownLeftOut.model_validate(found.left_out._asdict()),
            reference_date=found.reference.shown_day,
            profile=None if found.profile is None else ShownProfile.of(found.profile),
            **said(allowed, found.behind),
        )

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
