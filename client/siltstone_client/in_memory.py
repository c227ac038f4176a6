"""The data of one user in the in-memory Siltstone of `testing.py`: sessions, notes, memories and links."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import accumulate
from typing import Any, Final
from urllib.parse import quote

#: A worker's default limits: the silence after which a new exchange begins, the maximum number of messages of an
#: exchange, and the maximum age of the exchanges in a window.
EXCHANGE_GAP: Final = timedelta(seconds=120)
EXCHANGE_MESSAGES: Final = 16
WINDOW: Final = timedelta(days=1)
#: The importance of a memory if the caller gives none. A worker estimates it from the text instead.
IMPORTANCE: Final = 70.0

_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "https://siltstone.dev/memory")
#: The fields of a memory that a hit of a search does not have.
_NOT_OF_A_HIT: Final = ("last_accessed", "access_count", "summary_of")
_WORD: Final = re.compile(r"\w+")


def words(text: str) -> set[str]:
    """The words of a text, in lower case."""
    return set(_WORD.findall(text.lower()))


def relevance(question: str, text: str) -> float:
    """The share of the question's words that are in the text, 0-1. A worker compares meanings instead."""
    asked = words(question)
    return len(asked & words(text)) / len(asked) if asked else 0.0


def seen(at: datetime, day: date) -> str:
    """The day of a time, and how many days before `day` it is. A worker counts weeks, months and years, too."""
    age = (day - at.date()).days
    return f"{at.date()}, {f'{age} days ago' if age else 'today'}"


def shown_profile(memories: Iterable[Held]) -> dict[str, Any]:
    """Who the user is: the pinned memories, newest first. A worker also finds statements, people and tasks."""
    pinned = sorted((one for one in memories if one.pinned), key=lambda one: one.created_at, reverse=True)
    lines = [
        {"text": one.text, "memory_ids": [str(one.id)], "said_at": iso(one.created_at), "due": None} for one in pinned
    ]
    text = "\n".join(("Pinned:", *(f"- [{one.created_at.date()}] {one.text}" for one in pinned))) if pinned else ""
    sections = [{"part": "pinned", "lines": lines, "reworded": False}] if pinned else []
    return {"sections": sections, "text": text, "tokens": len(text) // 4, "left_out": 0}


def shown_context(
    window: Mapping[str, Any],
    notes: Sequence[Any],
    hits: Sequence[Any],
    day: date,
    max_tokens: Any,
    profile: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The answer of `context`. With `max_tokens`, of four characters each, the last memories are left out."""
    lines = [f"- [{one['when']}] {one['memory']}" for one in hits]
    ends = accumulate(len(line) / 4 for line in lines)
    known = [line for line, end in zip(lines, ends, strict=True) if max_tokens is None or end <= int(max_tokens)]
    said = [message for one in window["exchanges"] for message in one["messages"]]
    who = [profile["text"]] if profile and profile["text"] else []
    lines = [*who, *known, *(f"- {one['memory']}" for one in notes)]
    lines += [f"{one['name'] or one['role']}: {one['content']}" for one in said]
    prompt = "\n".join((f"Today is {day:%A}, {day}.", *lines)) if lines else ""
    return {
        **window,
        "notes": notes,
        "memories": hits[: len(known)],
        "prompt": prompt,
        "prompt_tokens": len(prompt) // 4,
        "left_out": {"memories": len(hits) - len(known), "notes": 0, "exchanges": 0},
        "reference_date": str(day),
        "profile": profile,
    }


@dataclass(frozen=True, slots=True)
class Said:
    """A message in a session."""

    message_id: str
    role: str
    content: str
    at: datetime
    name: str | None = None
    emotion: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Held:
    """A memory."""

    id: uuid.UUID
    text: str
    kind: str
    importance: float
    created_at: datetime
    session_id: str | None = None
    agent_id: str | None = None
    message_ids: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pinned: bool = False
    accesses: int = 0
    accessed_at: datetime | None = None
    superseded_by: uuid.UUID | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None

    def held_at(self, as_of: datetime | None) -> bool:
        """True if the memory held at a time, or holds now, if no time is given."""
        if as_of is None:
            return self.superseded_by is None
        if self.valid_to is not None and self.valid_to <= as_of:
            return False
        if self.valid_from is None and self.valid_to is not None and self.valid_to <= self.created_at:
            return True
        return (self.valid_from or self.created_at) <= as_of

    def shown(self) -> dict[str, Any]:
        """The memory in the JSON form of the API.

        In the in-memory Siltstone, memories do not decay, so the score is the importance, and the state is active.
        """
        return {
            "id": str(self.id),
            "memory": self.text,
            "kind": self.kind,
            "importance": self.importance,
            "score": self.importance,
            "state": "active",
            "created_at": iso(self.created_at),
            "last_accessed": iso(self.accessed_at or self.created_at),
            "access_count": self.accesses,
            "pinned": self.pinned,
            "session_id": self.session_id,
            "agent_id": self.agent_id,
            "message_ids": list(self.message_ids),
            "metadata": dict(self.metadata),
            "summary_of": [],
            "summarized_by": None,
            "superseded_by": None if self.superseded_by is None else str(self.superseded_by),
            "valid_from": None if self.valid_from is None else iso(self.valid_from),
            "valid_to": None if self.valid_to is None else iso(self.valid_to),
        }

    def hit(self, relevant: float, in_window: bool, day: date) -> dict[str, Any]:
        """The memory as a hit of a search, dated from `day`, in the JSON form of the API."""
        return {
            **{name: value for name, value in self.shown().items() if name not in _NOT_OF_A_HIT},
            "relevance": round(relevant, 4),
            "state": "short_term" if in_window else "active",
            "when": seen(self.created_at, day),
        }


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two memories."""

    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: str
    weight: float
    created_at: datetime

    def shown(self, seen_from: uuid.UUID) -> dict[str, Any]:
        """The link in the JSON form of the API, as seen from the memory `seen_from`, one of its two memories."""
        return {
            "source_id": str(self.source_id),
            "target_id": str(self.target_id),
            "kind": self.kind,
            "weight": self.weight,
            "direction": "out" if self.source_id == seen_from else "in",
            "created_at": iso(self.created_at),
        }


@dataclass(slots=True)
class Session:
    """The messages of a session. When the session ends, its exchanges become memories, but stay in the window too."""

    id: str
    said: list[Said] = field(default_factory=list)
    ended: bool = False

    def exchanges(self) -> list[list[Said]]:
        """The session's exchanges in time order, by the same rules as in a worker.

        A new exchange begins when the user writes after an answer, after a silence of `EXCHANGE_GAP`, or when the
        previous exchange has `EXCHANGE_MESSAGES` messages.
        """
        cut = list[list[Said]]()
        for one in sorted(self.said, key=lambda message: message.at):
            last = cut[-1] if cut else []
            if (
                not last
                or (one.role == "user" and any(earlier.role == "assistant" for earlier in last))
                or one.at - last[-1].at >= EXCHANGE_GAP
                or len(last) >= EXCHANGE_MESSAGES
            ):
                cut.append([])
            cut[-1].append(one)
        return cut


def memory_of(user_id: str, session_id: str, exchange: Sequence[Said]) -> Held:
    """The memory that an exchange becomes, with the id that a worker gives it."""
    parts = [_quoted(one.message_id) for one in exchange]
    identity = uuid.uuid5(_NAMESPACE, f"{_quoted(user_id)}/{_quoted(session_id)}/{','.join(parts)}")
    metadata = {name: value for one in exchange for name, value in one.metadata.items()}
    return Held(
        identity,
        "\n".join(one.content for one in exchange if one.role in ("user", "assistant")),
        "exchange",
        IMPORTANCE,
        exchange[0].at,
        session_id,
        message_ids=tuple(one.message_id for one in exchange),
        metadata=metadata,
    )


@dataclass(slots=True)
class User:
    """All data of one user in the in-memory Siltstone."""

    id: str
    sessions: dict[str, Session] = field(default_factory=dict)
    memories: dict[uuid.UUID, Held] = field(default_factory=dict)
    notes: dict[uuid.UUID, tuple[Held, datetime]] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    history: dict[uuid.UUID, list[tuple[datetime, str, dict[str, Any]]]] = field(default_factory=dict)
    forgotten: set[uuid.UUID] = field(default_factory=set)
    summaries: dict[str, tuple[uuid.UUID, str]] = field(default_factory=dict)

    def keep(self, memory: Held) -> None:
        """Add a memory, or replace the item with the same id.

        A forgotten memory is not added again, unless it is an item.
        """
        if memory.id in self.memories and memory.kind != "item":
            return
        if memory.id in self.forgotten and memory.kind != "item":
            return
        self.memories[memory.id] = memory
        self.note(memory.id, memory.created_at, "created", {})

    def change(self, identity: uuid.UUID, at: datetime, event: str, **fields: Any) -> None:
        """Change fields of a memory, and append the event to the memory's history."""
        if (memory := self.memories.get(identity)) is not None:
            self.memories[identity] = replace(memory, **fields)
            self.note(identity, at, event, {})

    def supersede(self, identity: uuid.UUID, by: Held, at: datetime) -> None:
        """Replace a memory by a newer one. It held until the newer one began to hold."""
        self.change(identity, at, "superseded", superseded_by=by.id, valid_to=by.valid_from or by.created_at)

    def note(self, identity: uuid.UUID, at: datetime, event: str, details: dict[str, Any]) -> None:
        """Append an event to a memory's history."""
        self.history.setdefault(identity, []).append((at, event, details))

    def forget_all(self) -> None:
        """Remove all data of the user. If the same messages or memories are sent again, they do not come back."""
        said = (memory_of(self.id, one.id, cut).id for one in self.sessions.values() for cut in one.exchanges())
        self.forgotten.update(said, self.memories, self.notes)
        for kept in (self.sessions, self.memories, self.notes, self.links, self.history, self.summaries):
            kept.clear()

    def forget(self, identity: uuid.UUID) -> None:
        """Remove a memory, a note or an exchange, with its links."""
        self.forgotten.add(identity)
        self.memories.pop(identity, None)
        self.notes.pop(identity, None)
        self.history.pop(identity, None)
        self.links = [one for one in self.links if identity not in (one.source_id, one.target_id)]

    def recent(self, now: datetime) -> Iterable[Held]:
        """The exchanges in the windows that are not memories yet.

        Each is in the form of the memory that it would become.
        """
        for session in self.sessions.values():
            for exchange in session.exchanges():
                made = memory_of(self.id, session.id, exchange)
                old = exchange[-1].at + WINDOW <= now
                if made.text.strip() and not old and made.id not in self.memories and made.id not in self.forgotten:
                    yield made

    def end(self, session: Session) -> None:
        """Promote the exchanges of a session, as a worker does with `memory.scoring.policy: all`."""
        session.ended = True
        for exchange in session.exchanges():
            made = memory_of(self.id, session.id, exchange)
            if made.text.strip():
                self.keep(made)


def iso(moment: datetime) -> str:
    """A time as text in the form of the API: ISO 8601 with milliseconds, and `Z` for UTC."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _quoted(part: str) -> str:
    return quote(part, safe="")


def text_of(content: Any) -> str:
    """The text of a message's content, which is a text or a list of parts. Parts without text are left out."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [one if isinstance(one, str) else one.get("text", "") for one in parts if isinstance(one, str | Mapping)]
    return "\n".join(one if isinstance(one, str) else one.get("value", "") for one in texts)


def shown_exchange(exchange: Sequence[Said], is_open: bool) -> dict[str, Any]:
    """An exchange of a window, in the JSON form of the API."""
    return {
        "messages": [
            {
                "message_id": one.message_id,
                "role": one.role,
                "content": one.content,
                "timestamp": iso(one.at),
                "name": one.name,
                "emotion": one.emotion,
            }
            for one in exchange
        ],
        "started_at": iso(exchange[0].at),
        "ended_at": iso(exchange[-1].at),
        "expires_at": iso(exchange[-1].at + WINDOW),
        "open": is_open,
    }


def shown_note(note: Held, until: datetime) -> dict[str, Any]:
    """A short-term memory that expires at `until`, in the JSON form of the API."""
    return {
        "id": str(note.id),
        "type": "short_term",
        "memory": note.text,
        "importance": note.importance,
        "created_at": iso(note.created_at),
        "expires_at": iso(until),
        "session_id": note.session_id,
        "metadata": dict(note.metadata),
    }


def shown_decision(user: User, session: Session, exchange: Sequence[Said]) -> dict[str, Any]:
    """The decision on an exchange, in the JSON form of the API: promoted, or undecided until its session ends."""
    made = memory_of(user.id, session.id, exchange)
    promoted = made.id in user.memories
    return {
        "message_ids": [one.message_id for one in exchange],
        "text": made.text,
        "started_at": iso(exchange[0].at),
        "ended_at": iso(exchange[-1].at),
        "expires_at": iso(exchange[-1].at + WINDOW),
        "status": "promoted" if promoted else "undecided",
        "outlook": None if promoted else "promoted",
        "importance": round(IMPORTANCE) if promoted else None,
        "parts": None,
        "memory_id": str(made.id) if promoted else None,
        "waits_for": None,
        "why": "every exchange is promoted",
        "change": "nothing",
    }


def shown_relation(of: Held, other: Held, link: Link | None) -> dict[str, Any]:
    """The memory `other` in the JSON form of the API, as linked to the memory `of`, or similar to it."""
    return {
        "id": str(other.id),
        "memory": other.text,
        "state": "active",
        "relation": "semantic" if link is None else "explicit",
        "similarity": round(relevance(of.text, other.text), 4),
        "kind": None if link is None else link.kind,
        "weight": None if link is None else link.weight,
        "direction": None if link is None else link.shown(of.id)["direction"],
    }
