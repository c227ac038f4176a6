"""Convert conversations in the format of ShareGPT, which many data sets use.

{"id": "QWJhYvA_0", "conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from schemas.conversations import Role
from streams.doors.importing.chats import Chat, Turn, first_moment, misshapen, text_id, text_of
from streams.doors.importing.openai import TIMES

_LISTS: Final = ("conversations", "conversation", "items")
_SPEAKERS: Final = {
    "human": Role.USER,
    "user": Role.USER,
    "gpt": Role.ASSISTANT,
    "assistant": Role.ASSISTANT,
    "chatgpt": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "bing": Role.ASSISTANT,
    "bard": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "tool": Role.TOOL,
    "observation": Role.TOOL,
}
#: The values of `from` in tool calls. Tool calls are not imported, because they are not part of the conversation.
_CALLS: Final = ("function_call", "tool_call")


def is_sharegpt(value: Mapping[str, Any]) -> bool:
    said = _said(value)
    return said is not None and all(isinstance(one, dict) and "from" in one for one in said[:1])


def chat_of(value: Mapping[str, Any]) -> Chat:
    """Convert a conversation in ShareGPT's format to a chat. Raises `BadRecord` if it has no list of messages."""
    said = _said(value)
    if said is None:
        raise misshapen("it has no list of conversations")
    return Chat.of(said, _turn, text_id(value.get("id")), first_moment(value, *TIMES))


def _said(value: Mapping[str, Any]) -> list[Any] | None:
    return next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)


def _turn(place: int, said: object) -> Turn | None:
    """Convert a message. Returns None if it has no text or is a tool call. Raises `BadRecord` if it is invalid."""
    if not isinstance(said, dict):
        raise misshapen(f"message {place} is not an object with from and value")
    speaker, words = said.get("from"), said.get("value", said.get("text"))
    if speaker in _CALLS or words is None:
        return None
    role = _SPEAKERS.get(str(speaker).lower())
    if role is None:
        raise misshapen(f"message {place}: from {str(speaker)[:40]!r} is not one of {', '.join(_SPEAKERS)}")
    text = text_of(words, role, place)
    return Turn(place, role, text, first_moment(said, *TIMES)) if text else None
