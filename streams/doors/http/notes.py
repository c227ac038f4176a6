"""Requests to remember a text, and short-term memories as the API returns them."""

from __future__ import annotations

import uuid
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from schemas.events import Remember
from schemas.fields import Timestamp
from schemas.times import iso, now_ms
from tables.windows.session_notes import Note


class NewMemory(Remember):
    """A text to remember: permanently, for a while (`kind: short_term`), or as the value of a key (`kind: item`).

    A client that sets `event_id` can safely send the request again.
    """

    model_config = ConfigDict(extra="forbid")

    event_id: uuid.UUID = Field(default_factory=uuid.uuid4)
    timestamp: Timestamp = Field(default_factory=now_ms)

    @field_validator("sources")
    @classmethod
    def _not_given_by_clients(cls, given: list[str]) -> list[str]:
        if given:
            raise ValueError("the worker records them from the request's token: leave them out")
        return given


class ShownNote(BaseModel):
    """A short-term memory that a client stored explicitly."""

    id: uuid.UUID
    type: Literal["short_term"] = "short_term"
    memory: str
    importance: float
    created_at: str
    expires_at: str
    session_id: str
    metadata: dict[str, Any]

    @classmethod
    def of(cls, note: Note) -> Self:
        return cls(
            id=note.id,
            memory=note.text,
            importance=note.importance,
            created_at=iso(note.created_at),
            expires_at=iso(note.expires_at),
            session_id=note.session_id,
            metadata=note.metadata or {},
        )


class NotesResponse(BaseModel):
    session_id: str
    user_id: str
    memories: list[ShownNote]
