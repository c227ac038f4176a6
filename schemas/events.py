"""The events of the topic `long-term` (a union, tagged by `type`), and the record of the topic `summary-requests`."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from operator import not_
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, FailFast, Field, TypeAdapter, model_validator

from schemas.conversations import ChatMessage
from schemas.fields import Content, Metadata, MetadataOfMany, Timestamp, absent
from schemas.ids import Id, Label
from schemas.sources import Sources

Ids = Annotated[list[Id], Field(min_length=1, max_length=1000)]

Thousandths = Annotated[int, Field(ge=0, le=1000)]
Topic = Annotated[Label, Field(min_length=1)]

#: 100 years. With this limit, the time of expiry is always a valid date.
LONGEST_TTL_SECONDS = 100 * 365 * 86_400


#: The maximum number of accesses to one memory in one event.
MOST_ACCESSES = 1_000_000


ValidFrom = Annotated[
    Timestamp | None, Field(description="from when it holds; if left out, from its creation", exclude_if=absent)
]
ValidTo = Annotated[
    Timestamp | None, Field(description="until when it holds, not before valid_from", exclude_if=absent)
]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    event_id: uuid.UUID
    user_id: Id
    timestamp: Timestamp


@dataclass(frozen=True, slots=True)
class Parts:
    """Why an exchange was kept or dropped: the parts of its score, in thousandths.

    `value` is the rating, 0-10, or null if no rating was requested.
    """

    reason: str
    fullness: Thousandths = 0
    sentiment: Thousandths = 0
    content: Thousandths = 0
    value: Annotated[int, Field(ge=0, le=10)] | None = None
    total: Thousandths = 0


class Promotion(_Event):
    """An exchange that is worth keeping."""

    type: Literal["promotion"] = "promotion"
    memory_id: uuid.UUID
    session_id: Id
    agent_id: Label | None = None
    text: str
    message_ids: Annotated[list[str], FailFast()]
    importance: Annotated[float, Field(ge=0, le=100)]
    started_at: Timestamp
    parts: Parts
    speakers: Annotated[list[str], FailFast()] = Field(
        default=[], description="names of speakers at the start of lines of the text"
    )
    metadata: MetadataOfMany | None = None
    sources: Sources = Field(
        default=[],
        exclude_if=not_,  # left out if empty, because most events have only usual sources
        description="who said it (see schemas/sources.py); left out for a user and an assistant without names",
    )
    pinned: bool = Field(
        default=False,
        exclude_if=not_,  # left out if false: in every event, it would take a fortieth of the log
        description="the memory does not decay, because the user asked to remember it; left out if false",
    )


def check_validity(valid_from: int | None, valid_to: int | None) -> None:
    """Raise `ValueError` if a time of validity (epoch ms) ends before it begins."""
    if valid_from is not None and valid_to is not None and valid_to < valid_from:
        raise ValueError("valid_to must not be before valid_from")


class Remember(_Event):
    """An explicit request to keep a text, without an exchange: for good, or for a while with its session.

    An `item` is a value under a key: `memory_id` is the key, and a later item replaces the earlier one. An item is
    never merged, does not decay, and does not count for `long_term.max_memories_per_user`.
    """

    type: Literal["remember"] = "remember"
    kind: Literal["long_term", "short_term", "item"] = "long_term"
    text: Annotated[Content, Field(min_length=1)]
    memory_id: uuid.UUID | None = Field(default=None, description="required if kind is item")
    session_id: Id | None = Field(default=None, description="required if kind is short_term")
    agent_id: Label | None = None
    importance: Annotated[float, Field(ge=0, le=100)] = Field(
        default_factory=lambda given: 50.0 if given.get("kind") == "short_term" else 100.0,
        description="if not given, computed from the text when the event is read",
    )
    ttl_seconds: Annotated[int, Field(ge=1, le=LONGEST_TTL_SECONDS)] | None = Field(
        default=None,
        description="how long a short-term memory is kept (if not given: memory.ttl_seconds), or how long an item is "
        "kept after it was last written or read (if not given: for good)",
    )
    metadata: Metadata | None = None
    supersedes: list[uuid.UUID] = Field(default=[], max_length=100, description="older memories that it replaces")
    origin: Literal["remember", "summary_item"] = Field(
        default="remember", description="source of the request, which becomes the kind of the long-term memory"
    )
    message_ids: list[Id] = Field(default=[], max_length=1000, description="ids of the messages that say it, if any")
    sources: Sources = Field(
        default=[],
        exclude_if=not_,
        description="who wrote it, if not the user; token:… names the token of the request",
    )

    topic: Topic | None = Field(
        default=None,
        exclude_if=absent,
        description="a short label of its subject, by which searches can filter",
    )
    created_at: Timestamp | None = Field(
        default=None,
        description="creation time, if earlier than `timestamp`, as in an export; the memory ages from `timestamp`",
    )
    valid_from: ValidFrom = None
    valid_to: ValidTo = None

    @model_validator(mode="after")
    def _fields_of_the_kind(self) -> Self:
        if self.kind == "short_term" and self.session_id is None:
            raise ValueError("a short-term memory belongs to a session: session_id is missing")
        if self.kind == "long_term" and self.ttl_seconds is not None:
            raise ValueError("ttl_seconds is for kinds short_term and item: a long-term memory does not expire")
        if self.kind != "long_term" and self.supersedes:
            raise ValueError("a short-term memory or item supersedes nothing: supersedes is for kind long_term")
        if self.kind == "short_term" and self.topic is not None:
            raise ValueError("topic is for kinds long_term and item: a short-term memory has none")
        if self.kind == "item" and self.memory_id is None:
            raise ValueError("an item is kept under its key: memory_id is missing")
        if self.kind != "long_term" and self.created_at is not None:
            raise ValueError(
                "created_at is for kind long_term: a short-term memory or item is created at its timestamp"
            )
        if self.kind != "long_term" and (self.valid_from, self.valid_to) != (None, None):
            raise ValueError("valid_from and valid_to are for kind long_term: a short-term memory or item has none")
        check_validity(self.valid_from, self.valid_to)
        return self


class Touch(_Event):
    """Memories were returned to a user: one or more accesses of each."""

    type: Literal["touch"] = "touch"
    memory_ids: Annotated[list[uuid.UUID], FailFast()]
    times: Annotated[list[Annotated[int, Field(ge=1, le=MOST_ACCESSES)]], FailFast()] = Field(
        default=[], description="number of accesses of each memory; if left out, one each"
    )

    @model_validator(mode="after")
    def _times_of_each(self) -> Self:
        if self.times and len(self.times) != len(self.memory_ids):
            raise ValueError("times must have one value for each of memory_ids, or be left out")
        return self


class Link(_Event):
    """Two memories belong together."""

    type: Literal["link"] = "link"
    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: Id = "related"
    weight: Annotated[float, Field(ge=0, le=1)] = 1.0


class Unlink(_Event):
    type: Literal["unlink"] = "unlink"
    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: Id = "related"


class Forget(_Event):
    """A user's right: the memory is removed for good, also in replays."""

    type: Literal["forget"] = "forget"
    memory_id: uuid.UUID


class Expire(_Event):
    """An item has expired: it is removed, unless it was written or read since."""

    type: Literal["expire"] = "expire"
    memory_id: uuid.UUID
    expired_at: Timestamp = Field(description="an item that expires later is not removed")


class ForgetUser(_Event):
    """All data of the user up to `timestamp` is removed for good, also in replays."""

    type: Literal["forget_user"] = "forget_user"


class Pin(_Event):
    """A pinned memory does not decay."""

    type: Literal["pin"] = "pin"
    memory_id: uuid.UUID


class Unpin(_Event):
    type: Literal["unpin"] = "unpin"
    memory_id: uuid.UUID


class Edit(_Event):
    """A memory's text, metadata or time of validity was changed. A field that is not given stays as it is."""

    type: Literal["edit"] = "edit"
    memory_id: uuid.UUID
    text: Annotated[Content, Field(min_length=1)] | None = None
    metadata: Metadata | None = Field(
        default=None, description="merged into the memory's metadata; a null removes its key (RFC 7396)"
    )
    reason: Id = "manual"
    sources: Sources = Field(
        default=[], exclude_if=not_, description="who wrote the new text, in addition to who wrote the old one"
    )

    valid_from: ValidFrom = None
    valid_to: ValidTo = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if (self.text, self.metadata, self.valid_from, self.valid_to) == (None, None, None, None):
            raise ValueError("an edit needs text, metadata, valid_from or valid_to")
        check_validity(self.valid_from, self.valid_to)
        return self


class Supersede(_Event):
    """A newer memory replaces an older one, which is kept, but is in no default result."""

    type: Literal["supersede"] = "supersede"
    memory_id: uuid.UUID
    by: uuid.UUID
    reason: Id = "manual"


class Archive(_Event):
    """A memory moves to the archive: only the archive's own search finds it."""

    type: Literal["archive"] = "archive"
    memory_id: uuid.UUID
    reason: Id = "manual"
    last_accessed: Timestamp | None = Field(
        default=None, description="if given, a memory that was accessed later, or is pinned, is not archived"
    )


class Restore(_Event):
    """A memory moves back from the archive, and counts as accessed now."""

    type: Literal["restore"] = "restore"
    memory_id: uuid.UUID


class Remove(_Event):
    """An archived memory is removed for good. A memory outside of the archive stays."""

    type: Literal["remove"] = "remove"
    memory_id: uuid.UUID
    reason: Id = "manual"
    last_accessed: Timestamp | None = Field(
        default=None, description="if given, a memory that was restored later, or is pinned, is not removed"
    )


LongTermEvent = (
    Promotion
    | Remember
    | Touch
    | Link
    | Unlink
    | Forget
    | Expire
    | ForgetUser
    | Pin
    | Unpin
    | Edit
    | Supersede
    | Archive
    | Restore
    | Remove
)
LONG_TERM_EVENT: TypeAdapter[LongTermEvent] = TypeAdapter(Annotated[LongTermEvent, Field(discriminator="type")])


class SummaryRequest(BaseModel):
    """Asks for the summary of a user's day."""

    model_config = ConfigDict(frozen=True)

    run_id: uuid.UUID
    user_id: Id
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    reason: Literal["count", "manual", "day_end"]
    messages: list[ChatMessage] = []
