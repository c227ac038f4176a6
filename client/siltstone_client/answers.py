"""What the calls answer with. Fields are the API's, by its names; those of a newer worker are passed over."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """Frozen: an answer says how it was."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Written(Answer):
    """A write is in the log.

    `token`: give it, or the whole answer, to a read as `at_least`. `applied`: of a write that waited, true.
    """

    token: str | None
    applied: bool | None = None


class Accepted(Written):
    """Where a write lies in the log. The `event_id` of `remember` is the new memory's id, where it has no other."""

    event_id: str
    topic: str
    partition: int
    offset: int


class NotTaken(Answer):
    """A message of a list that is not in the log: its place in the list, from 0, and why (`detail`).

    `kind`: `invalid_fields`, or `nothing_said` where it has no words.
    """

    index: int
    kind: str
    detail: str


class AcceptedMessages(Written):
    """Messages in the log, in their order; each `event_id` is its message's id. `not_taken` are the others."""

    accepted: list[Accepted]
    not_taken: list[NotTaken] = []


class ForgottenSource(Written):
    """How many memories, exchanges that were none, and short-term memories are forgotten with a source."""

    user_id: str
    source: str
    memories: int
    exchanges: int
    short_term_memories: int


class RequestedSummary(Written):
    """A request for a summary is in the log. The day's file has it when `run_id` is among its runs."""

    run_id: UUID
    user_id: str
    date: date
    messages: int
    topic: str
    partition: int
    offset: int


class Behind(Answer):
    """What of a partition is not back yet at its worker: `done` of `of_all`, in `unit`."""

    partition: int
    part: str
    doing: str
    done: int
    of_all: int | None
    unit: str
    eta_seconds: float | None


class MayBePartial(Answer):
    """With `partial=True`: whether something is not back yet that may belong here, and what."""

    partial: bool | None = None
    behind: list[Behind] | None = None


class Hit(Answer):
    """A memory that answers a query, or what was just said (state `short_term`). `relevance` 0-1, `score` 0-100.

    `source`: who wrote what it is made of: `user`, `tool:search`, `token:app`, …; older workers do not say it.
    """

    id: UUID
    memory: str
    relevance: float
    score: float
    state: str
    importance: float
    kind: str
    created_at: datetime
    session_id: str | None
    agent_id: str | None
    message_ids: list[str]
    source: list[str] = []
    metadata: dict[str, Any]
    superseded_by: UUID | None = None
    summarized_by: UUID | None = None
    explain: dict[str, Any] | None = None


class Found(MayBePartial):
    """Hits, most relevant first; `better_elsewhere`: how many more relevant ones are in states not asked for."""

    results: list[Hit]
    better_elsewhere: dict[str, int]


class SaidMessage(Answer):
    """A message in its window."""

    message_id: str
    role: str
    content: str
    timestamp: datetime
    name: str | None
    emotion: str | None


class Exchange(Answer):
    """What the user said, and what answered it."""

    messages: list[SaidMessage]
    started_at: datetime
    ended_at: datetime
    expires_at: datetime
    open: bool


class Exchanges(Answer):
    """A session's newest exchanges, oldest first."""

    session_id: str
    user_id: str
    exchanges: list[Exchange]


class Note(Answer):
    """A short-term memory of a session."""

    id: UUID
    type: str = "short_term"
    memory: str
    importance: float
    created_at: datetime
    expires_at: datetime
    session_id: str
    metadata: dict[str, Any]


class Notes(Answer):
    """A session's short-term memories, oldest first."""

    session_id: str
    user_id: str
    memories: list[Note]


class Context(Exchanges, MayBePartial):
    """What an assistant needs before it answers; `prompt` is all of it as one text."""

    notes: list[Note]
    memories: list[Hit]
    prompt: str


class StoredMemory(Answer):
    """A memory as it stands. `score` is its importance (0-100) after decay."""

    id: UUID
    memory: str
    kind: str
    importance: float
    score: float
    state: str
    created_at: datetime
    last_accessed: datetime
    access_count: int
    pinned: bool
    session_id: str | None
    agent_id: str | None
    message_ids: list[str]
    source: list[str] = []
    metadata: dict[str, Any]
    summary_of: list[UUID]
    summarized_by: UUID | None
    superseded_by: UUID | None


class OneMemory(StoredMemory, MayBePartial):
    """A memory that was asked for by its id."""


class Memories(MayBePartial):
    """A page of memories, oldest first; `total` with these filters, `next` for `after`: None at the end."""

    memories: list[StoredMemory]
    total: int
    next: UUID | None


class PastEvent(Answer):
    """What was done to a memory."""

    at: datetime
    event: str
    details: dict[str, Any]


class History(Answer):
    """What was done to a memory since it was made, oldest first."""

    id: UUID
    user_id: str
    events: list[PastEvent]


class Link(Answer):
    """Two memories that belong together; `direction` (out, in) as seen from the one that was asked about."""

    source_id: UUID
    target_id: UUID
    kind: str
    weight: float
    direction: str
    created_at: datetime


class Links(Answer):
    """A memory's links, oldest first."""

    id: UUID
    links: list[Link]


class RelatedMemory(Answer):
    """A memory that is linked (`relation` explicit) or resembles (semantic). `similarity` is a cosine."""

    id: UUID
    memory: str
    state: str
    relation: str
    similarity: float
    kind: str | None
    weight: float | None
    direction: str | None


class Related(Answer):
    """Linked memories by weight, then those that resemble."""

    id: UUID
    related: list[RelatedMemory]


class Day(Answer):
    """A day that has a summary, and the runs that wrote it."""

    date: date
    runs: list[UUID]


class WaitingSummary(Answer):
    """What could not be made yet."""

    date: date
    run_id: UUID
    tries: int


class Summaries(Answer):
    """A user's days with a summary, in order, and what is yet to be made."""

    user_id: str
    days: list[Day]
    waiting: list[WaitingSummary]


class DaySummary(Answer):
    """The Markdown of a day."""

    user_id: str
    date: date
    markdown: str
    runs: list[UUID]


class Parts(Answer):
    """Of a score, in thousandths; `value` is the rating, 0-10."""

    reason: str
    fullness: int
    sentiment: int
    content: int
    value: int | None
    total: int


class WaitsFor(Answer):
    """What has to come before an exchange is scored."""

    exchanges: int
    session_ends_at: datetime


class Decision(Answer):
    """What became of an exchange, `why`, and what would `change` it."""

    message_ids: list[str]
    text: str
    started_at: datetime
    ended_at: datetime
    expires_at: datetime
    status: str
    outlook: str | None
    importance: int | None
    parts: Parts | None
    memory_id: UUID | None
    waits_for: WaitsFor | None
    why: str
    change: str


class Decisions(Answer):
    """What became of each exchange of a session, oldest first."""

    session_id: str
    user_id: str
    policy: str
    judge: str
    exchanges: int
    promote_threshold: int
    ended: bool
    decisions: list[Decision]


class StateCount(Answer):
    """How many memories, and percent of all."""

    count: int
    percent: float


class DailyStates(Answer):
    """Memories at the end of a UTC day."""

    day: date
    active: int
    cold: int
    deprecated: int


class States(Answer):
    """The memories of the worker that was asked, of all its users, by state."""

    at: datetime
    total: int
    states: dict[str, StateCount]
    daily: list[DailyStates]


class Reached(Answer):
    """What was waited for can be read."""

    applied: bool
