"""The form of a memory in an export: one line, with all data that another Siltstone needs to recreate the memory.

People can read the line. The other lines of an export have the form of records in Kafka: messages, and `link`,
`supersede` and `archive` events.
"""

from __future__ import annotations

import uuid
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer

from schemas.events import Topic
from schemas.fields import Timestamp, absent
from schemas.ids import Id, Label
from schemas.sources import Sources
from schemas.times import iso


class ExportedMemory(BaseModel):
    """A long-term memory in an export. With `kind: short_term`, it is a short-term memory until `expires_at`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["memory"] = "memory"
    id: uuid.UUID
    user_id: Id
    text: Annotated[str, Field(min_length=1)]
    kind: Id = "remember"
    importance: Annotated[float, Field(ge=0, le=100)] | None = None
    created_at: Timestamp
    last_accessed: Timestamp | None = None
    session_id: Id | None = None
    agent_id: Label | None = None
    message_ids: list[str] = []
    speakers: list[str] = []
    sources: Sources = Field(default=[], exclude_if=not_, description="who wrote it, if its kind does not say so")
    promotion: dict[str, Any] | None = Field(default=None, description="why an exchange was kept")
    topic: Topic | None = Field(default=None, exclude_if=absent)
    metadata: dict[str, Any] | None = None
    pinned: bool = False
    expires_at: Timestamp | None = None
    valid_from: Timestamp | None = None
    valid_to: Timestamp | None = None

    @field_serializer("created_at", "last_accessed", "expires_at", "valid_from", "valid_to")
    def _as_text(self, at: int | None) -> str | None:
        return None if at is None else iso(at)
