"""Convert the lines of our own export to the events that recreate its memories.

    {"type": "memory", "id": "…", "user_id": "ann", "text": "Likes skiing", "kind": "exchange", "importance": 82, …}
    {"type": "supersede", …}   {"type": "link", …}   {"type": "archive", …}

A memory of kind `exchange` becomes a promotion with the id of the original promotion. So if a window has the same
exchange, the exchange does not become a second memory. The ids of all events are derived from the memory's id, so a
second import of the same file changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from schemas.events import LONG_TERM_EVENT, Edit, LongTermEvent, Parts, Pin, Promotion, Remember
from schemas.exported import ExportedMemory
from schemas.ids import event_id
from schemas.record_values import invalid
from tables.memories import items

MEMORY: Final = "memory"
#: The types of events that a line of an export may have, besides memories. Commands that forget data are not accepted
#: from a file.
COMMANDS: Final = ("supersede", "link", "archive")
#: Fields of an exported memory whose values in an event depend on the memory's kind.
_OF_THE_KIND: Final = ("type", "kind", "created_at")
#: The fields of an exported memory that the events have under the same name and with the same meaning.
_COMMON: Final = [
    name for name in ExportedMemory.model_fields if name in Remember.model_fields and name not in _OF_THE_KIND
]


def is_exported(value: Mapping[str, Any]) -> bool:
    return value.get("type") in (MEMORY, *COMMANDS)


def events_of(value: Mapping[str, Any], user: str | None) -> Iterator[LongTermEvent]:
    """Yield the events of one line of an export. `user` is used if the line names no user.

    Raises `BadRecord` if the line is invalid.
    """
    fields = {"user_id": user, **value} if user is not None else dict(value)
    try:
        if value.get("type") != MEMORY:
            yield LONG_TERM_EVENT.validate_python(fields)
            return
        memory = ExportedMemory.model_validate(fields)
        yield _made(memory)
        yield from _validity(memory)
    except ValidationError as exc:
        raise invalid(exc) from exc
    if memory.pinned and not _born_pinned(memory):
        yield Pin(
            event_id=event_id("import", memory.user_id, memory.id, "pin"),
            user_id=memory.user_id,
            timestamp=_aged_from(memory),
            memory_id=memory.id,
        )


def _validity(memory: ExportedMemory) -> Iterator[Edit]:
    """Yield the event that gives a promoted exchange its time of validity. Other kinds are created with theirs."""
    if memory.kind == "exchange" and (memory.valid_from, memory.valid_to) != (None, None):
        yield Edit(
            event_id=event_id("import", memory.user_id, memory.id, "validity"),
            user_id=memory.user_id,
            timestamp=_aged_from(memory),
            memory_id=memory.id,
            valid_from=memory.valid_from,
            valid_to=memory.valid_to,
        )


def _aged_from(memory: ExportedMemory) -> int:
    return memory.created_at if memory.last_accessed is None else memory.last_accessed


def _born_pinned(memory: ExportedMemory) -> bool:
    return memory.kind == items.KIND or (memory.pinned and (memory.promotion or {}).get("pinned") is True)


def _made(memory: ExportedMemory) -> Promotion | Remember:
    """Return the event that creates an exported memory. Raises `ValidationError` if a field is invalid there."""
    common = {name: getattr(memory, name) for name in _COMMON} | {"memory_id": memory.id}
    if memory.importance is None:
        del common["importance"]
    if memory.kind == "exchange" and memory.session_id is not None:
        given = memory.promotion or {}
        parts = {name: given[name] for name in Parts.__slots__ if name in given}
        return Promotion.model_validate(
            {
                "importance": 70,
                **common,
                "event_id": event_id("promotion", memory.id),
                "timestamp": _aged_from(memory),
                "started_at": memory.created_at,
                "parts": {"reason": "import", **parts},
                "speakers": memory.speakers,
                "pinned": _born_pinned(memory),
            }
        )
    of_kind: dict[str, Any] = {"created_at": memory.created_at, "timestamp": _aged_from(memory)}
    if memory.kind == "short_term":
        lasts = None if memory.expires_at is None else max(1, (memory.expires_at - memory.created_at) // 1000)
        of_kind = {"kind": "short_term", "timestamp": memory.created_at, "ttl_seconds": lasts}
    elif memory.kind == "summary_item":
        of_kind["origin"] = "summary_item"
    names: list[object] = [memory.kind, memory.id]
    if memory.kind == items.KIND:
        lasts = items.lasts(memory.metadata or {})
        written = memory.created_at if lasts is None else _aged_from(memory)
        of_kind = {"kind": items.KIND, "timestamp": written, "ttl_seconds": lasts}
        names.append(written)  # a later value of the same key needs another event id
    return Remember.model_validate({**common, **of_kind, "event_id": event_id("import", memory.user_id, *names)})
