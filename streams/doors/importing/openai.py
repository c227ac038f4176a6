"""Convert messages as OpenAI's API accepts them: a JSON array, or an object with this array in a field `messages`.

    [{"role": "user", "content": "…"}, {"role": "assistant", "content": null, "tool_calls": […]}, …]

The content of a message may have any form that `schemas/contents.py` can read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from schemas.contents import CALLS, ROLES
from schemas.conversations import Role
from streams.doors.importing.chats import Chat, Turn, first_moment, misshapen, text_id, text_of

TIMES: Final = ("timestamp", "created_at", "create_time", "created", "time")
_CHAT_IDS: Final = ("session_id", "conversation_id", "thread_id", "id")
#: Names of fields in which an object may hold its list of messages.
_LISTS: Final = ("messages", "conversations", "conversation", "items", "turns", "dialogue", "dialog")


def is_message(value: Mapping[str, Any]) -> bool:
    return "role" in value and ("content" in value or "tool_calls" in value)


def is_openai(value: Mapping[str, Any]) -> bool:
    return _messages(value) is not None


def _messages(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the object's list of messages, or None if it has none.

    An empty list is accepted only in the field `messages`.
    """
    for name in _LISTS:
        listed = value.get(name)
        if not isinstance(listed, list) or not (listed or name == "messages"):
            continue
        if all(isinstance(one, dict) and "role" in one for one in listed[:1]):
            return listed
    return None


def thread_of(message: Mapping[str, Any]) -> str:
    """Return the id of the conversation to which a message belongs, or an empty text if the message has none."""
    return next((found for name in ("thread_id", "conversation_id") if (found := text_id(message.get(name)))), "")


def chat_of(value: Mapping[str, Any]) -> Chat:
    """Convert an object with a list of messages to a chat. Raises `BadRecord` if it has no such list."""
    messages = _messages(value)
    if messages is None:
        raise misshapen("it has no list of messages with a role")
    identity = next((found for name in _CHAT_IDS if (found := text_id(value.get(name)))), None)
    return chat_of_messages(messages, identity, first_moment(value, *TIMES))


def chat_of_messages(messages: Sequence[Any], identity: str | None = None, began: int | None = None) -> Chat:
    return Chat.of(messages, _turn, identity, began)


def _turn(place: int, message: object) -> Turn | None:
    """Convert a message. Returns None if it has no text. Raises `BadRecord` if it violates the format."""
    if not isinstance(message, dict):
        raise misshapen(f"message {place} is not an object with role and content")
    if "role" not in message and "type" in message:
        return None  # a tool call or another item of OpenAI's Responses API
    role = ROLES.get(str(message.get("role")))
    if role is None:
        raise misshapen(f"message {place}: role {str(message.get('role'))[:40]!r} is not one of {', '.join(ROLES)}")
    if "content" not in message and not CALLS & message.keys():
        raise misshapen(f"message {place}: content is missing")
    text = text_of(message.get("content"), role, place)
    if not text:
        return None
    name = message.get("name")
    return Turn(
        place,
        Role(role),
        text,
        first_moment(message, *TIMES),
        text_id(message.get("message_id")) or text_id(message.get("id")),
        name if isinstance(name, str) and name else None,
    )
