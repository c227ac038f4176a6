"""Answers of the MCP tools for which the API's own answer does not suit an assistant.

The API's answer has too much or too little data in these cases.
"""

from __future__ import annotations

import uuid
from typing import Any, Self

from pydantic import BaseModel, Field


class Written(BaseModel):
    """A write is in the log."""

    memory_id: uuid.UUID
    applied: bool = Field(
        description="whether the write can be read now; if false, it is accepted, and readable within moments"
    )
    token: str | None = Field(description="the consistency token of the write, for the HTTP API")

    @classmethod
    def of(cls, memory_id: uuid.UUID | str, accepted: dict[str, Any], **more: Any) -> Self:
        return cls.model_validate({"memory_id": memory_id, **accepted, **more})


class Forgotten(Written):
    was_memory: bool = Field(
        description="false: the user had no memory with this id; a note or an exchange with this id is forgotten"
    )
