"""A chat message as it goes into the log."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

#: `role` (user, assistant, system, tool) and `content`; also `message_id`, `timestamp`, `name`, `emotion`,
#: `agent_id`, `metadata`. Other fields are kept.
Message: TypeAlias = Mapping[str, Any]
#: ISO 8601 or epoch milliseconds as text or number, or a datetime; UTC where it names no zone.
Moment: TypeAlias = datetime | str | int


def record_of(message: Message, user_id: str | None, session_id: str) -> dict[str, Any]:
    """With whom it is of, and an id of its own where it has none: sent twice, it is taken once.

    Who somebody is comes from the arguments: a message may come from elsewhere. Raises `ValueError` where it names
    another user or session.
    """
    for names, given in ((("user_id", "userId"), user_id), (("session_id", "run_id"), session_id)):
        for name in names:
            if message.get(name, given) != given:
                raise ValueError(f"{name}: a message names another than the call")
    record: dict[str, Any] = {**message, "session_id": session_id}
    if user_id is not None:
        record["user_id"] = user_id
    if record.get("message_id") is None:
        record["message_id"] = uuid.uuid4().hex
    if "timestamp" in record:
        record["timestamp"] = moment(record["timestamp"])
    return record


def moment(given: Moment) -> str | int:
    """As it goes into JSON."""
    return given.isoformat() if isinstance(given, datetime) else given
