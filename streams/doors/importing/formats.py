"""Recognise the format of an imported file by the fields of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from streams.doors.importing import chatgpt, claude, exported, mem0, openai, openmemory, sharegpt, slack, telegram
from streams.doors.importing.chats import Chat


class Format(StrEnum):
    """The formats of files that can be imported."""

    MEM0 = "mem0"
    OPENMEMORY = "openmemory"
    SILTSTONE = "siltstone"
    OPENAI = "openai"
    SHAREGPT = "sharegpt"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    WHATSAPP = "whatsapp"
    TELEGRAM = "telegram"
    SLACK = "slack"


#: Descriptions of the formats for messages such as "chats.json was read as a ChatGPT export".
NAMES: Final = {
    Format.SILTSTONE: "messages and memories in Siltstone's own format",
    Format.OPENAI: "OpenAI-style messages",
    Format.SHAREGPT: "ShareGPT conversations",
    Format.CHATGPT: "a ChatGPT export",
    Format.MEM0: "mem0 memories",
    Format.OPENMEMORY: "an OpenMemory export",
    Format.CLAUDE: "a Claude export",
    Format.WHATSAPP: "a WhatsApp chat",
    Format.TELEGRAM: "a Telegram export",
    Format.SLACK: "a Slack export",
}
#: Names of fields in which an object may hold a list of messages, conversations or memories.
_LISTS: Final = ("results", "memories", "conversations", "chats", "data")


def recognised(value: object) -> Format | None:
    """Return the format of a value of the file, or None if the value has no known format.

    A known value is a message, a conversation, a memory, or an object with a list of these.
    """
    if not isinstance(value, dict):
        return None
    found = _of_one(value)
    if found is None and (inner := _listed(value)):
        found = _of_one(inner[0])
    return found


def each(value: object, of: Format) -> list[Any]:
    """Return the messages, conversations or memories that a value lists, or the value itself if it lists none."""
    if of is Format.OPENMEMORY and isinstance(value, dict):
        return list(openmemory.each_memory(value))
    if of is Format.TELEGRAM and isinstance(value, dict) and telegram.is_telegram(value):
        return telegram.each_chat(value)
    if (
        isinstance(value, dict)
        and _of_one(value) is None
        and (inner := _listed(value))
        and recognised(inner[0]) is of
    ):
        return inner
    return [value]


def _listed(value: Mapping[str, Any]) -> list[Any]:
    for name in _LISTS:
        inner = value.get(name)
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            return inner
    return []


def _of_one(value: Mapping[str, Any]) -> Format | None:
    for of, looks_so in _LOOKS.items():
        if looks_so(value):
            return of
    return None


def _is_ours(value: Mapping[str, Any]) -> bool:
    """Return True if the value is in Siltstone's own format.

    It is a session end, a line of our export, or another value that names a user or a session. But a message in
    OpenAI's form whose content is not a text is in OpenAI's format, even if it names a user.
    """
    if value.get("type") == "session_end" or exported.is_exported(value):
        return True
    named = any(name in value for name in ("user_id", "session_id", "run_id"))
    return named and (not openai.is_message(value) or isinstance(value.get("content"), str))


#: A test for each format, in the order of the tests. The test for our own format comes after the tests for mem0 and
#: OpenMemory, because the memories of mem0 and OpenMemory name a user too.
_LOOKS: Final[dict[Format, Callable[[Mapping[str, Any]], bool]]] = {
    Format.CHATGPT: chatgpt.is_chatgpt,
    Format.CLAUDE: claude.is_claude,
    Format.TELEGRAM: telegram.is_telegram,
    Format.SLACK: slack.is_slack,
    Format.SHAREGPT: sharegpt.is_sharegpt,
    Format.MEM0: mem0.is_mem0,
    Format.OPENMEMORY: openmemory.is_openmemory,
    Format.SILTSTONE: lambda value: _is_ours(value) and not openai.is_openai(value),
    Format.OPENAI: lambda value: openai.is_openai(value) or openai.is_message(value),
}
#: The chat of one value, for each format whose values are whole chats and name no people. `records.py` converts the
#: other formats.
CHATS: Final[dict[Format, Callable[[Any], Chat]]] = {
    Format.OPENAI: openai.chat_of,
    Format.SHAREGPT: sharegpt.chat_of,
    Format.CHATGPT: chatgpt.chat_of,
    Format.CLAUDE: claude.chat_of,
}
