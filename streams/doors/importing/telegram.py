"""Convert chats that Telegram Desktop exported as JSON: one chat, or all chats of an account.

{"name": "Tom", "type": "personal_chat", "id": 7, "messages": [
  {"id": 1, "type": "message", "date_unixtime": "1704103200", "from": "Ann", "from_id": "user1", "text": "Hello"}]}
{"personal_information": {"user_id": 1, …}, "chats": {"list": [… as above …]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any, Final

from schemas.errors import BadRecord
from schemas.halves import without_halves
from streams.doors.importing.chats import moment, text_id
from streams.doors.importing.people import Spoken, Talk

_NAMELESS: Final = "Deleted Account"
OWNER: Final = "siltstone_owner"
"""The field in which `each_chat` stores the user id of the export's owner."""


def is_telegram(value: Mapping[str, Any]) -> bool:
    if isinstance(value.get("chats"), dict) and isinstance(value["chats"].get("list"), list):
        return True
    messages = value.get("messages")
    return (
        isinstance(messages, list)
        and isinstance(value.get("type"), str)
        and all(isinstance(one, dict) and "date" in one and "type" in one for one in messages[:1])
    )


def each_chat(value: Mapping[str, Any]) -> list[Any]:
    """Return all chats in the value, which is a single chat or the export of a whole account."""
    if "messages" in value:
        return [value]
    person = value.get("personal_information")
    owner = text_id(person.get("user_id")) if isinstance(person, dict) else None
    return [{**one, OWNER: owner} if isinstance(one, dict) else one for one in value["chats"]["list"]]


def talk_of(value: Mapping[str, Any], zone: tzinfo) -> Talk:
    messages = value.get("messages")
    if not isinstance(messages, list):
        raise BadRecord("invalid_fields", "it has no list of messages")
    spoken, left_out, problems = list[Spoken](), 0, list[BadRecord]()
    chat = text_id(value.get("id"))
    for place, message in enumerate(messages, start=1):
        if not isinstance(message, dict):
            problems.append(BadRecord("invalid_fields", f"message {place} is not an object"))
            continue
        text = _text(message.get("text")) if message.get("type") == "message" else ""
        if not text.strip():
            left_out += 1
            continue
        speaker = message.get("from_id")
        identity = text_id(message.get("id"))
        spoken.append(
            Spoken(
                place,
                str(message.get("from") or _NAMELESS),
                text,
                moment(message.get("date_unixtime")) or _local(message.get("date"), zone),
                f"{chat}-{identity}" if chat and identity else None,
                (speaker, speaker.removeprefix("user")) if isinstance(speaker, str) else (),
            )
        )
    return Talk(spoken, chat, left_out, tuple(problems), _owner(value, spoken), OWNER in value)


def _owner(value: Mapping[str, Any], spoken: list[Spoken]) -> tuple[str, ...]:
    """Return the id or the name of the person who exported the chat, or an empty tuple if this person is unknown.

    The name of a personal chat is the name of the other person. So if the speakers have exactly one other name, this
    is the name of the person who exported the chat.
    """
    if value.get(OWNER):
        return (str(value[OWNER]),)
    others = {one.name for one in spoken} - {str(value.get("name"))}
    return tuple(others) if value.get("type") == "personal_chat" and len(others) == 1 else ()


def _local(value: object, zone: tzinfo) -> int | None:
    """Convert an ISO 8601 time to epoch ms, or return None if it is not a time.

    `zone` is the time zone of a time without a zone.
    """
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if at is None else round((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp() * 1000)


def _text(value: object) -> str:
    """Join the pieces of a message's text, because Telegram stores bold words and links as separate objects."""
    pieces = value if isinstance(value, list) else [value]
    texts = [one.get("text") if isinstance(one, dict) else one for one in pieces]
    return without_halves("".join(one for one in texts if isinstance(one, str)))
