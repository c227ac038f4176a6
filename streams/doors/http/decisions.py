"""The decisions on a session's exchanges, with their reasons, as the API returns them."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from typing import Self

from fastapi import HTTPException
from pydantic import BaseModel, Field

from schemas.exchanges import render
from schemas.sessions import Session
from schemas.times import iso
from streams.intake.rules.decision_wording import lasting
from streams.intake.rules.explaining import Explanation, Status
from streams.service import MemoryService


class ShownParts(BaseModel):
    """The parts of a score. They are in thousandths, except the rating in `value`."""

    reason: str = Field(
        description="forced, high_score, low_score, judged_important, judged_unimportant, unrated, unread, all, "
        "value_wanted"
    )
    fullness: int
    sentiment: int
    content: int
    value: int | None = Field(description="the rating, 0-10; null if none was requested or given")
    total: int


class ShownWaits(BaseModel):
    exchanges: int = Field(description="number of exchanges that must still close before this one is scored")
    session_ends_at: str = Field(description="end of the session if no message follows; this exchange is then scored")


class ShownDecision(BaseModel):
    message_ids: list[str]
    text: str
    started_at: str
    ended_at: str
    expires_at: str
    status: Status
    outlook: Status | None = Field(
        description="the status that an open or waiting exchange would get now: promoted, dropped or asked"
    )
    importance: int | None = Field(description="70-100 if promoted, else 0; null while a rating is needed")
    parts: ShownParts | None = Field(
        description="score of the status or the outlook; null if no user or assistant spoke"
    )
    memory_id: uuid.UUID | None = Field(
        description="id of the memory that a closed exchange became or would become; a near-copy is merged into an "
        "older memory"
    )
    waits_for: ShownWaits | None = Field(description="what a waiting exchange waits for")
    why: str
    change: str = Field(description="what would have to change for another outcome")

    @classmethod
    def of(cls, explained: Explanation, ttl_seconds: int) -> Self:
        exchange, waits = explained.exchange, explained.waits
        return cls(
            message_ids=[message.message_id for message in exchange.messages],
            text=render(exchange) or "\n".join(message.content for message in exchange.messages),
            started_at=iso(exchange.started_at),
            ended_at=iso(exchange.ended_at),
            expires_at=iso(exchange.ended_at + ttl_seconds * 1000),
            status=explained.status,
            outlook=explained.outlook,
            importance=explained.importance,
            parts=None if explained.parts is None else ShownParts(**asdict(explained.parts)),
            memory_id=explained.memory_id,
            waits_for=waits and ShownWaits(exchanges=waits.exchanges, session_ends_at=iso(waits.session_ends_at)),
            why=explained.why,
            change=explained.change,
        )


class DecisionsResponse(BaseModel):
    session_id: str
    user_id: str
    policy: str
    judge: str = Field(description="what rates exchanges: a model, or the local estimator")
    exchanges: int = Field(description="closed exchanges of the session; above the threshold, the oldest are scored")
    promote_threshold: int
    ended: bool
    decisions: list[ShownDecision]


async def decisions_of(service: MemoryService, user_id: str, session_id: str, limit: int | None) -> DecisionsResponse:
    """Return the decisions on a session's exchanges, oldest first, including expired exchanges.

    Raises an `HTTPException` (404) if this worker has no such session.
    """
    memory = service.settings.memory
    session = service.sessions.session(user_id, session_id)
    if session == Session(user_id, session_id):
        kept = lasting(memory.ttl_seconds)
        raise HTTPException(
            404,
            f"this worker has no session {session_id} of user {user_id}: check both ids; an ended session is "
            f"forgotten after {kept} without a message",
        )
    return DecisionsResponse(
        session_id=session_id,
        user_id=user_id,
        policy=memory.scoring.policy,
        judge=service.sessions.rater_name,
        exchanges=session.exchanges,
        promote_threshold=memory.promote_threshold,
        ended=session.ended,
        decisions=[
            ShownDecision.of(explained, memory.ttl_seconds)
            for explained in await service.sessions.explain(session, limit)
        ],
    )
