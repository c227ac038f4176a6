"""Convert memories of OpenMemory's export.

The export is a ZIP archive with `memories.json` (all data of a user) and `memories.jsonl.gz` (one memory per line):

{"user": {"user_id": "ann", …}, "apps": […], "categories": […], "memory_categories": […],
 "memories": [{"id": …, "content": "Likes skiing", "state": "active", "app_id": …, "created_at": …}]}
{"id": …, "content": "Likes skiing", "state": "active", "app": "cursor", "categories": ["sports"], …}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from schemas.errors import BadRecord
from schemas.events import Archive, LongTermEvent
from schemas.ids import event_id
from streams.doors.importing import mem0
from streams.doors.importing.chats import first_moment

DELETED: Final = "deleted"
#: The import archives memories in these states, because OpenMemory showed them to no app.
_ASIDE: Final = ("archived", "paused")


def is_openmemory(value: Mapping[str, Any]) -> bool:
    if isinstance(value.get("memories"), list) and isinstance(value.get("user"), dict):
        return True
    return isinstance(value.get("content"), str) and "state" in value and "app" in value and "role" not in value


def each_memory(value: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the memories of `memories.json`, and add to each memory its user's id, its app and its categories.

    If `value` is a line of `memories.jsonl.gz`, it is one memory, and is yielded unchanged.
    """
    if not isinstance(value.get("memories"), list):
        yield value
        return
    user, apps = value.get("user") or {}, _named(value.get("apps"))
    categories, of_memory = _named(value.get("categories")), dict[str, list[str]]()
    for pair in value.get("memory_categories") or []:
        if isinstance(pair, dict) and (name := categories.get(str(pair.get("category_id")))):
            of_memory.setdefault(str(pair.get("memory_id")), []).append(name)
    for one in value["memories"]:
        if not isinstance(one, dict):
            yield one
            continue
        named = {"app": apps.get(str(one.get("app_id"))), "categories": of_memory.get(str(one.get("id")), [])}
        yield {**one, **named, "user_id": user.get("user_id")}


def events_of(value: object, user: str | None, session: str | None, undated: int) -> Iterator[LongTermEvent]:
    """Yield the event that creates a memory. If the memory was archived or paused, also yield an event to archive it.

    Raises `BadRecord` if the value is not a valid memory of OpenMemory.
    """
    if not isinstance(value, dict) or not isinstance(value.get("content"), str):
        raise BadRecord("invalid_fields", "it is not a memory: it has no text in the field content")
    metadata = value.get("metadata") if isinstance(value.get("metadata"), dict) else {}
    app = {"app_id": value["app"]} if value.get("app") else {}
    as_mem0 = {
        **{name: value.get(name) for name in ("id", "user_id", "created_at", "updated_at", "categories")},
        "memory": value["content"],
        "metadata": {**(metadata or {}), **app},
    }
    event = mem0.remembered(as_mem0, user, session, undated)
    yield event
    if (state := str(value.get("state"))) in _ASIDE and event.memory_id is not None:
        yield Archive(
            event_id=event_id("openmemory", event.user_id, "archive", event.memory_id),
            user_id=event.user_id,
            timestamp=first_moment(value, "archived_at", "updated_at") or event.timestamp,
            memory_id=event.memory_id,
            reason=state,
        )


def _named(rows: Any) -> dict[str, str]:
    return {str(one["id"]): str(one["name"]) for one in rows or [] if isinstance(one, dict) and one.get("name")}
