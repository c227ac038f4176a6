"""Any events of two users' shard, for properties, and the vectors of their texts."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any, TypeVar

from hypothesis import strategies as st

from schemas.events import (
    Archive,
    Edit,
    Expire,
    Forget,
    ForgetUser,
    Link,
    LongTermEvent,
    Pin,
    Remember,
    Remove,
    Restore,
    Supersede,
    Touch,
    Unlink,
    Unpin,
)
from tables.vectors.index import Vectors
from tests.support.making import START, axis, leaning, promotion

E = TypeVar("E", bound=LongTermEvent)


def event(kind: type[E], /, user: str = "u", at: int = START, **fields: Any) -> E:
    return kind.model_validate({"event_id": uuid.uuid4(), "user_id": user, "timestamp": at, **fields})  # type: ignore[return-value]


VECTORS = [axis(0), leaning(0, 1, 0.96), axis(2), axis(3)]
WHO = ("u", "v")
#: The second is a near-copy of the first.
TEXTS = ("I row", "I row!", "I swim", "I dive")
SAID = [
    (
        promotion(
            f"{user}: {TEXTS[place]}", f"{user}{place}", user=user, at=START + place, importance=70 + 5 * place
        ),
        vector,
    )
    for user in WHO
    for place, vector in enumerate(VECTORS)
]
IDS = [one.memory_id for one, _ in SAID]
KEYS = [uuid.UUID(int=number) for number in range(2)]
KEY = st.sampled_from(KEYS)
USERS, ID, TIMES = st.sampled_from(WHO), st.sampled_from(IDS), st.integers(START, START + 9)
COMMANDS: st.SearchStrategy[LongTermEvent] = st.one_of(
    st.sampled_from([one for one, _ in SAID]),
    st.builds(lambda user, ids, at: event(Touch, user, at, memory_ids=ids), USERS,
              st.lists(ID, unique=True, max_size=3), TIMES),
    st.builds(lambda kind, user, i, at: event(kind, user, at, memory_id=i),
              st.sampled_from([Pin, Unpin, Archive, Archive, Restore, Restore, Remove, Forget]), USERS, ID, TIMES),
    st.builds(lambda kind, user, i, seen: event(kind, user, memory_id=i, last_accessed=seen),
              st.sampled_from([Archive, Remove]), USERS, ID, TIMES),
    st.builds(lambda kind, user, a, b: event(kind, user, source_id=a, target_id=b), st.sampled_from([Link, Unlink]),
              USERS, ID, ID),
    st.builds(lambda user, old, new: event(Supersede, user, memory_id=old, by=new), USERS, ID, ID),
    st.builds(lambda user, i: event(Edit, user, memory_id=i, metadata={"mood": "fine"}), USERS, ID),
    st.builds(lambda user, i, place: event(Edit, user, memory_id=i, text=f"edited {place}"), USERS, ID,
              st.integers(0, len(VECTORS) - 1)),
    st.builds(lambda user, old, at: event(Remember, user, at, text="edited 0", supersedes=[old]), USERS, ID, TIMES),
    st.builds(lambda user, key, at, place, seconds: event(Remember, user, at, kind="item", memory_id=key,
              text=f"item {place}", ttl_seconds=seconds), USERS, KEY, TIMES, st.integers(0, len(VECTORS) - 1),
              st.sampled_from([None, 1])),
    st.builds(lambda kind, user, key, at: event(kind, user, at, memory_id=key),
              st.sampled_from([Unpin, Archive, Restore, Remove, Forget]), USERS, KEY, TIMES),
    st.builds(lambda user, key, at: event(Expire, user, memory_id=key, expired_at=at + 1000), USERS, KEY, TIMES),
    st.builds(lambda user, at: event(ForgetUser, user, at), USERS, st.integers(START, START + 4)),
)  # fmt: skip


def vectors_of(events: Iterable[LongTermEvent]) -> dict[uuid.UUID, Vectors]:
    """The vectors of all promotions, and of the texts that `events` give, by event id."""
    return {one.event_id: vector for one, vector in SAID} | {
        one.event_id: VECTORS[int(one.text.split()[-1])]
        for one in events
        if isinstance(one, Edit | Remember) and one.text is not None
    }
