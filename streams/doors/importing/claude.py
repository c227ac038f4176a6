"""Convert conversations of Claude's export, `conversations.json`.

{"uuid": "…", "name": "…", "created_at": "…", "chat_messages": [
  {"uuid": "…", "sender": "human", "text": "…", "content": [{"type": "text", "text": "…"}], "created_at": "…"}]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from schemas.conversations import Role
from streams.doors.importing.chats import Chat, Turn, first_moment, misshapen, moment, text_id, text_of

_SENDERS: Final = {"human": Role.USER, "assistant": Role.ASSISTANT}


def is_claude(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("chat_messages"), list)


def chat_of(value: Mapping[str, Any]) -> Chat:
    """Convert a conversation of the export to a chat. Raises `BadRecord` if it has no list of messages."""
    if not is_claude(value):
        raise misshapen("it has no list of chat_messages")
    return Chat.of(value["chat_messages"], _turn, text_id(value.get("uuid")), first_moment(value, "created_at"))


def _turn(place: int, message: object) -> Turn | None:
    """Convert a message. Returns None if it has no text, but only files or tool calls.

    Raises `BadRecord` if the message violates the format.
    """
    if not isinstance(message, dict):
        raise misshapen(f"message {place} is not an object with sender and text")
    role = _SENDERS.get(str(message.get("sender")))
    if role is None:
        raise misshapen(f"message {place}: sender {str(message.get('sender'))[:40]!r} is not one of human, assistant")
    text = text_of(message.get("content") or message.get("text"), role, place)
    if not text:
        return None
    return Turn(place, role, text, moment(message.get("created_at")), text_id(message.get("uuid")))
