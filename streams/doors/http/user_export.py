"""The export of a user's data as lines of JSON: memories, and the messages of the short-term windows.

The lines are in this order: memories (oldest first), short-term memories, events about memories (superseded, linked,
archived), and messages. So a worker that imports the lines has each memory before it reads the exchange from which
the memory was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from schemas.events import Archive, Link, LongTermEvent, Supersede
from schemas.exchanges import Message
from schemas.exported import ExportedMemory
from schemas.ids import event_id
from schemas.memories import MEMORY_COLUMNS, VALIDITY, Memory
from schemas.sources import SOURCES, meant, sources_in, speakers_in
from schemas.times import iso
from streams.service import MemoryService
from tables.memories.catalog.archive import Archived
from tables.memories.items import is_item
from tables.memories.validity import SUMMARY, given_validity
from tables.windows.session_notes import Note

#: The metadata key of past changes of state. An export omits this key, because an import computes states again.
_HISTORY: Final = "transitions"
#: Metadata keys of promoted exchanges that an export writes as separate fields.
_OF_EXCHANGES: Final = ("promotion", "speakers")
#: The fields that it has only if the user gave them: an import ends the validity of a superseded memory again.
_VALIDITY: Final = ("valid_from", "valid_to")
#: The fields of a memory that an export has under the same name.
_FIELDS: Final = [name for name in ExportedMemory.model_fields if name in MEMORY_COLUMNS and name not in _VALIDITY]
#: The kinds of memories that stay the same in an import. A memory of another kind is imported as an explicit memory.
_KINDS: Final = ("exchange", "summary_item", "item")


async def exported(service: MemoryService, user_id: str) -> list[bytes]:
    """Return the lines of the export, each with a final newline. Expired exchanges are omitted.

    Raises `ShardNotHere` if this worker does not own the user's partition.
    """
    memories = await service.of_user(user_id)
    archive = await service.users.ask(user_id, lambda shard: shard.archive.listed(user_id))
    links = await service.users.ask(user_id, lambda shard: shard.links.of_user(user_id))
    every = [*memories, *(one.memory for one in archive)]
    events: list[LongTermEvent] = [one for memory in every for one in _superseded(memory)]
    events += [
        Link(
            event_id=event_id("import", user_id, "link", link.source_id, link.target_id, link.kind),
            user_id=user_id,
            timestamp=link.created_at,
            source_id=link.source_id,
            target_id=link.target_id,
            kind=link.kind,
            weight=link.weight,
        )
        for link in links
    ]
    events += [_archived(one) for one in archive]
    lines = [_line(_memory(memory)) for memory in sorted(every, key=lambda one: (one.created_at, one.seq))]
    lines += [_line(_note(note)) for note in service.sessions.notes_of(user_id)]
    lines += [_event(one) for one in events]
    lines += list(_messages(service, user_id))
    return lines


def _memory(memory: Memory) -> ExportedMemory:
    exchange = memory.kind == "exchange"
    hidden = (_HISTORY, SOURCES, VALIDITY, *(_OF_EXCHANGES if exchange else ()))
    given = {} if is_item(memory) else given_validity(memory)
    return ExportedMemory(
        **{name: getattr(memory, name) for name in _FIELDS},
        **{name: given.get(name) for name in _VALIDITY},
        speakers=speakers_in(memory.meta) if exchange else [],
        sources=_sources(memory),
        promotion=memory.meta.get("promotion") if exchange else None,
        metadata={key: value for key, value in memory.meta.items() if key not in hidden} or None,
    )


def _note(note: Note) -> ExportedMemory:
    return ExportedMemory(
        id=note.id,
        user_id=note.user_id,
        text=note.text,
        kind="short_term",
        importance=note.importance,
        created_at=note.created_at,
        session_id=note.session_id,
        agent_id=note.agent_id,
        sources=meant((note.metadata or {}).get(SOURCES)),
        metadata={key: value for key, value in (note.metadata or {}).items() if key != SOURCES} or None,
        expires_at=note.expires_at,
    )


def _sources(memory: Memory) -> list[str]:
    """Return the sources of a memory for the export.

    Recorded sources are returned as they are. If none are recorded, the default sources of the memory's kind are
    returned, but only if an import would assign other ones. Otherwise the list is empty.
    """
    if recorded := meant(memory.meta.get(SOURCES)):
        return recorded
    usual, becomes = sources_in({}, memory.kind), memory.kind if memory.kind in _KINDS else "remember"
    return [] if usual == sources_in({}, becomes) else usual


def _superseded(memory: Memory) -> Iterator[Supersede]:
    """If the memory is superseded, yield the event that replaces it by the newer memory or by the summary."""
    by, reason = memory.superseded_by, "manual"
    if by is None:
        by, reason = memory.summarized_by, SUMMARY
    if by is not None:
        yield Supersede(
            event_id=event_id("import", memory.user_id, "supersede", memory.id, by),
            user_id=memory.user_id,
            timestamp=memory.last_accessed,
            memory_id=memory.id,
            by=by,
            reason=reason,
        )


def _archived(one: Archived) -> Archive:
    return Archive(
        event_id=event_id("import", one.memory.user_id, "archive", one.memory.id),
        user_id=one.memory.user_id,
        timestamp=one.at,
        memory_id=one.memory.id,
        reason=one.reason,
    )


def _messages(service: MemoryService, user_id: str) -> Iterator[bytes]:
    for session_id, exchange in sorted(
        service.sessions.window_of(user_id), key=lambda one: (one[0], one[1].started_at)
    ):
        for message in exchange.messages:
            yield _said(user_id, session_id, message)


def _said(user_id: str, session_id: str, message: Message) -> bytes:
    fields: dict[str, Any] = {
        "user_id": user_id,
        "session_id": session_id,
        "message_id": message.message_id,
        "role": message.role,
        "content": message.content,
        "timestamp": iso(message.timestamp),
        "emotion": message.emotion,
        "name": message.name,
        "agent_id": message.agent_id,
        "metadata": message.metadata,
    }
    return orjson.dumps({name: value for name, value in fields.items() if value is not None}) + b"\n"


def _line(memory: ExportedMemory) -> bytes:
    return memory.model_dump_json(exclude_none=True).encode() + b"\n"


def _event(event: LongTermEvent) -> bytes:
    fields = event.model_dump(mode="json", exclude_none=True)
    return orjson.dumps({**fields, "timestamp": iso(event.timestamp)}) + b"\n"
