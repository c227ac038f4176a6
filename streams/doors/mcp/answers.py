"""Answers of tools for which the API's own answer would tell an assistant too much, or too little."""

from __future__ import annotations

import uuid
from typing import Any, Self

from pydantic import BaseModel, Field


class Written(BaseModel):
    """A write is in the log."""

    memory_id: uuid.UUID
    applied: bool = Field(description="whether it can be read now; false: it is accepted, and will be within moments")
    token: str | None = Field(description="the consistency token of the write, for the HTTP API")

    @classmethod
    def of(cls, memory_id: uuid.UUID | str, accepted: dict[str, Any], **more: Any) -> Self:
        return cls.model_validate({"memory_id": memory_id, **accepted, **more})


class Forgotten(Written):
    was_memory: bool = Field(
        description="false: no memory of the user's had this id; a note or an exchange of it is forgotten"
    )
