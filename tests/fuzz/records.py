"""Seeded records of both topics as services send them: every type, every field, about few users and few ids."""

from __future__ import annotations

import random
import uuid
from typing import Any

from schemas.events import Edit, Promotion, Remember
from tests.schemas.test_events import EVENTS
from tests.support.making import START

Fields = dict[str, Any]

USERS = ("user-0", "user-1", "石")
SESSIONS = ("s", "t/1")
#: Few, so that commands find what they are about.
IDS = tuple(str(uuid.UUID(int=number)) for number in range(1, 7))
MESSAGE_IDS = tuple(f"m{number}" for number in range(12))
#: They have the most fields, of which most is made.
WITH_TEXT: list[type[Any]] = [Promotion, Remember, Edit]
TEXTS = ("hi", "my name is Ada and I live in Berlin", "请记住我叫小明", "remember that I am allergic to nuts", "ok")
OPTIONAL: Fields = {
    "emotion": "sad",
    "name": "Ada",
    "agent_id": "bot",
    "metadata": {"tags": ["a", {"b": None}]},
    "mood": {"of": [1, 2.5]},
    "message_id": None,
}


def valid(chance: random.Random) -> tuple[str, Fields]:
    """A topic (`conversations` or `long_term`) and the fields of a record that belongs there."""
    if chance.random() < 0.5:
        kind = chance.choice(("session_end", "silence", *["message"] * 8))
        fields = said(chance, kind)
        return "conversations", {
            name: value for name, value in fields.items() if name not in OPTIONAL or chance.random() < 0.4
        }
    return "long_term", event(chance, chance.choice(WITH_TEXT if chance.random() < 0.5 else list(EVENTS)))


def said(chance: random.Random, kind: str, user: str = "") -> Fields:
    """A message with all of its fields, or another record of `conversations`; of any user where none is named."""
    fields: Fields = {
        "user_id": user or chance.choice(USERS),
        "session_id": chance.choice(SESSIONS),
        "timestamp": START + chance.choice((1, 1000, 86_400_000)) * chance.randrange(40),
    }
    if kind != "message":
        return {"type": kind, **fields}
    words = {"role": chance.choice(("user", "assistant", "tool")), "content": chance.choice(TEXTS)}
    return {**fields, **words, **OPTIONAL, "message_id": chance.choice(MESSAGE_IDS)}


def event(chance: random.Random, kind: type[Any], user: str = "") -> Fields:
    """An event of this type with all of its fields. Some name memories that there may be."""
    fields: Fields = {
        **EVENTS[kind],
        "event_id": _any_id(chance),
        "user_id": user or chance.choice(USERS),
        "timestamp": START + 1000 * chance.randrange(40),
    }
    for name in sorted(fields.keys() & {"memory_id", "source_id", "target_id", "by"}):
        fields[name] = chance.choice((*IDS, _any_id(chance)))
    match fields["type"]:
        case "promotion":
            parts = {"reason": "judged_important", "fullness": 300, "content": 200, "value": 7, "total": 570}
            fields |= {"parts": parts, "speakers": ["Ada"], "agent_id": "bot"}
            fields["message_ids"] = [chance.choice(MESSAGE_IDS)]
        case "remember":
            fields |= {"memory_id": _any_id(chance), "supersedes": [chance.choice(IDS)], "agent_id": "bot"}
            if chance.random() < 0.4:
                fields = for_a_while(chance, fields)
        case "touch":
            fields["memory_ids"] = [chance.choice(IDS), chance.choice(IDS)]
    if "text" in fields:
        fields["text"] = f"{chance.choice(TEXTS)} {chance.random()}"
        fields["metadata"] = {"tags": ["a"], "transitions": [1]}
    return fields


def for_a_while(chance: random.Random, remember: Fields) -> Fields:
    """The same as a short-term memory."""
    kept = {name: value for name, value in remember.items() if name != "supersedes"}
    return {**kept, "kind": "short_term", "session_id": chance.choice(SESSIONS), "ttl_seconds": 60}


def _any_id(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128)))
