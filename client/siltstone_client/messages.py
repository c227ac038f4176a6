"""Turns a chat message of the caller into the JSON record that goes into the log."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

#: A message has a `role` (user, assistant, system, tool; developer means system, and function means tool) and a
#: `content`: a text, or parts, of which only parts with `text` are used. Beside tool calls, the content may be None.
#: A message without text is not stored. Optional fields are `message_id`, `timestamp`, `name`, `emotion`, `agent_id`
#: and `metadata`. Other fields are stored as well.
Message: TypeAlias = Mapping[str, Any]
ROLES: Final = ("user", "assistant", "system", "tool", "developer", "function")
MAX_CONTENT_BYTES: Final = 32 * 1024
#: A time: a datetime, a text in ISO 8601, or epoch milliseconds as an integer. It is in UTC if it names no time zone.
Moment: TypeAlias = datetime | str | int


def record_of(message: Message, user_id: str | None, session_id: str) -> dict[str, Any]:
    """The message with its user and session, and with a new id if it has neither an id nor a time.

    With an id, a message that is sent twice is stored once. For a message with a time, the worker derives the id from
    session, role, time and content.

    The user and the session of the arguments are used, because the message may come from another program. Raises
    `ValueError` if the message itself names another user or session.
    """
    for names, given in ((("user_id", "userId"), user_id), (("session_id", "run_id"), session_id)):
        for name in names:
            if message.get(name, given) != given:
                raise ValueError(f"{name}: a message names another value than the call")
    record: dict[str, Any] = {**message, "session_id": session_id}
    if user_id is not None:
        record["user_id"] = user_id
    if record.get("timestamp") is not None:
        record["timestamp"] = moment(record["timestamp"])
    elif record.get("created_at") is None and record.get("message_id") is None:
        record["message_id"] = uuid.uuid4().hex
    return record


def moment(given: Moment) -> str | int:
    """A time as a JSON value: ISO 8601 for a datetime, otherwise the given text or number."""
    return given.isoformat() if isinstance(given, datetime) else given


def as_json(value: Any) -> bytes:
    """The value as JSON in UTF-8. Raises `ValueError` for NaN.

    UTF-8 cannot encode a lone surrogate, so U+FFFD replaces it.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def check(record: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a message that every worker would refuse.

    A Kafka producer must check this itself, because it gets no answer from a worker.
    """
    role, content = record.get("role"), record.get("content")
    if role not in ROLES:
        raise ValueError(f"role: must be one of {', '.join(ROLES)}")
    if "content" not in record and not {"tool_calls", "function_call"} & record.keys():
        raise ValueError("content: is missing")
    if content is not None and not isinstance(content, str | list | Mapping):
        raise ValueError("content: must be a text, a list of parts with text, or None")
    if isinstance(content, str) and len(content.encode(errors="replace")) > MAX_CONTENT_BYTES:
        raise ValueError(f"content: must be at most {MAX_CONTENT_BYTES} bytes of UTF-8")
