"""Makes what tests need: records, exchanges, promotions, vectors."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import orjson

from schemas.conversations import ChatMessage, Role
from schemas.events import Parts, Promotion
from schemas.exchanges import Exchange, Message
from schemas.ids import event_id, memory_id
from schemas.memories import Memory, State

#: 2026-01-01T00:00:00Z
START = 1_767_225_600_000


def message(i: int, role: str = "user", content: str | None = "", at: int = 0, **fields: Any) -> ChatMessage:
    """The i-th message of user u's session s, `at` seconds after START."""
    return ChatMessage.model_validate(
        {
            "user_id": "u",
            "session_id": "s",
            "message_id": f"m{i}",
            "role": role,
            "content": f"text {i}" if content == "" else content,
            "timestamp": START + at * 1000,
            **fields,
        }
    )


def exchange(user: str, assistant: str = "ok", *, seq: int = 0, emotion: str | None = None) -> Exchange:
    return Exchange(
        seq,
        (
            Message(f"u{seq}", Role.USER, user, START, emotion),
            Message(f"a{seq}", Role.ASSISTANT, assistant, START + 1000),
        ),
    )


def promotion(text: str, *ids: str, user: str = "u", at: int = START, importance: float = 80) -> Promotion:
    identity = memory_id(user, "s", ids)
    return Promotion(
        event_id=event_id("promotion", identity),
        user_id=user,
        timestamp=at,
        memory_id=identity,
        session_id="s",
        text=text,
        message_ids=list(ids),
        importance=importance,
        started_at=at,
        parts=Parts(reason="all", total=1000),
    )


def axis(place: int, dimension: int = 8) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The unit vector along one axis: cosine 1 with itself, 0 with the others."""
    vector = np.zeros(dimension, np.float32)
    vector[place] = 1
    return vector


def line(i: int, user: str, role: str, at: int, **fields: Any) -> bytes:
    """A record of `conversations`."""
    return orjson.dumps(
        {
            "user_id": user,
            "session_id": f"{user}-s",
            "message_id": f"{user}-{i}",
            "role": role,
            "content": f"message {i} of {user}",
            "timestamp": START + at * 1000,
            **fields,
        }
    )


def some_id() -> uuid.UUID:
    return uuid.uuid4()


def memory_of(importance: float, pinned: bool = False) -> Memory:
    """A memory last accessed at START."""
    return Memory(
        1, some_id(), "u", "s", None, "x", "exchange", (), importance, START, START, 0, State.ACTIVE, pinned, {}
    )


def leaning(place: int, towards: int, cosine: float, dimension: int = 8) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A unit vector whose cosine with `axis(place)` is given; the rest of it lies along `axis(towards)`."""
    rest = (1 - cosine * cosine) ** 0.5
    return (cosine * axis(place, dimension) + rest * axis(towards, dimension)).astype(np.float32)  # type: ignore[no-any-return]


def spoken(seq: int, *said: tuple[str, str], at: int = 0) -> Exchange:
    """An exchange of (role, content) pairs, a second apart, from `at` seconds after START."""
    return Exchange(
        seq,
        tuple(
            Message(f"{seq}-{place}", Role(role), content, START + (at + place) * 1000)
            for place, (role, content) in enumerate(said)
        ),
    )
