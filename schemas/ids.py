"""Ids: their limits, and those that are functions of what they name."""

from __future__ import annotations

import hashlib
import uuid
from typing import Annotated
from urllib.parse import quote

from pydantic import Field

#: Namespace of every deterministic id of ours (uuid5).
SILTSTONE = uuid.uuid5(uuid.NAMESPACE_URL, "https://siltstone.dev/memory")

MAX_ID_CHARS = 256

Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
Label = Annotated[str, Field(max_length=MAX_ID_CHARS)]


def id_of_content(session_id: str, role: str, timestamp: int, content: str) -> str:
    """The id of a message that came without one: a hash of session, role, timestamp and content."""
    basis = f"{session_id}\0{role}\0{timestamp}\0{content}"
    return hashlib.blake2b(basis.encode(), digest_size=16).hexdigest()


def memory_id(user_id: str, session_id: str, message_ids: tuple[str, ...]) -> uuid.UUID:
    """The id of the memory that these messages become; the same messages always give the same id."""
    sources = ",".join(quote(part, safe="") for part in message_ids)
    return uuid.uuid5(SILTSTONE, f"{quote(user_id, safe='')}/{quote(session_id, safe='')}/{sources}")


def event_id(*parts: object) -> uuid.UUID:
    """A deterministic event id: the same event sent twice is applied once."""
    return uuid.uuid5(SILTSTONE, "\0".join(map(str, parts)))
