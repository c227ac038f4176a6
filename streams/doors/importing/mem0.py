"""Convert memories of mem0, in the form of mem0's function `get_all` and of mem0's exports.

{"results": [{"id": …, "memory": "Likes cricket", "user_id": "ann", "created_at": "2025-07-01T…", …}]}
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from schemas.errors import BadRecord
from schemas.events import Remember
from schemas.ids import SILTSTONE
from schemas.record_values import invalid
from streams.doors.importing.chats import first_moment, text_id


def is_mem0(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("memory"), str) and "role" not in value


def remembered(value: Mapping[str, Any], user: str | None, session: str | None, undated: int) -> Remember:
    """Return the command to remember a memory of mem0. The same memory always gives the same command.

    The memory keeps its id if the id is a UUID. A worker computes its importance, because mem0 has none. If the user,
    the session or the time is missing, `user`, `session` or `undated` (epoch ms) is used. Raises `BadRecord`.
    """
    text, of_user = str(value.get("memory") or "").strip(), text_id(value.get("user_id")) or user
    if of_user is None:
        raise BadRecord("invalid_fields", "user_id: no user is named: pass --user")
    identity = (text_id(value.get("id")) or text).encode(errors="replace").decode()
    named = of_user.encode(errors="replace").decode()
    metadata = value.get("metadata")
    more = {"categories": value["categories"]} if value.get("categories") else {}
    try:
        return Remember.model_validate(
            {
                "type": "remember",
                "event_id": uuid.uuid5(SILTSTONE, f"mem0/{named}/{identity}"),
                "memory_id": _uuid(identity) or uuid.uuid5(SILTSTONE, f"mem0/{named}/memory/{identity}"),
                "user_id": of_user,
                "session_id": text_id(value.get("run_id")) or session,
                "agent_id": text_id(value.get("agent_id")),
                "text": text,
                "timestamp": first_moment(value, "created_at", "updated_at") or undated,
                "metadata": {**more, **(metadata if isinstance(metadata, dict) else {})} or None,
            }
        )
    except ValidationError as exc:
        raise invalid(exc) from exc


def _uuid(identity: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(identity)
    except ValueError:
        return None
