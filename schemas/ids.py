"""The length limit of ids, and ids that are computed from the content of records."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import quote

from pydantic import Field

#: Namespace of all our deterministic ids (uuid5).
SILTSTONE = uuid.uuid5(uuid.NAMESPACE_URL, "https://siltstone.dev/memory")

MAX_ID_CHARS = 256

Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
Label = Annotated[str, Field(max_length=MAX_ID_CHARS)]


def id_of_content(session_id: str, role: str, timestamp: int, content: str) -> str:
    """Return an id for a message that has no id: a hash of its session, role, timestamp and content."""
    basis = f"{session_id}\0{role}\0{timestamp}\0{content}"
    return hashlib.blake2b(basis.encode(), digest_size=16).hexdigest()


def memory_id(user_id: str, session_id: str, message_ids: Sequence[str]) -> uuid.UUID:
    """Return the id of the memory made of these messages; the same messages always give the same id."""
    sources = ",".join(map(_quoted, message_ids))
    return uuid.uuid5(SILTSTONE, f"{_quoted(user_id)}/{_quoted(session_id)}/{sources}")


def beginning_ids(user_id: str, session_id: str, message_ids: Sequence[str]) -> list[uuid.UUID]:
    """Return the memory ids of the beginnings of a list of messages, the longest beginning first.

    The first id is that of the messages without the last one, the second id that of the messages without the last
    two.
    """
    separator, found = f"{_quoted(user_id)}/{_quoted(session_id)}/", []
    # SHA-1 as in uuid5. The digest of each beginning is continued for the next longer beginning.
    digest = hashlib.sha1(SILTSTONE.bytes, usedforsecurity=False)
    for one in message_ids[:-1]:
        digest.update(f"{separator}{_quoted(one)}".encode())
        found.append(uuid.UUID(bytes=digest.digest()[:16], version=5))
        separator = ","
    return found[::-1]


#: Matches the texts that `quote` leaves unchanged. Most ids are such texts, and the match is much faster than
#: `quote`.
_unreserved = re.compile(r"[A-Za-z0-9_.~-]*").fullmatch


def _quoted(part: str) -> str:
    return part if _unreserved(part) else quote(part, safe="")


def event_id(*parts: object) -> uuid.UUID:
    """Return an event id that depends only on `parts`, so that an event that is sent twice is applied once."""
    return uuid.uuid5(SILTSTONE, "\0".join(map(str, parts)))
