"""The answers of the calls. Fields have the API's names; unknown fields of a newer worker are ignored."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """The base class of answers. They are frozen, because each describes the state at one moment."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Written(Answer):
    """A write that is in the log.

    `token`: pass it, or the whole answer, to a read as `at_least`; None if nothing was written. `applied`: true if
    the write has waited until its effect could be read; None if it did not wait.
    """

    token: str | None
    applied: bool | None = None


class Accepted(Written):
    """A write's place in the log. The `event_id` of `remember` is the memory's id, unless `memory_id` was given."""

    event_id: str
    topic: str
    partition: int
    offset: int


class NotTaken(Answer):
    """A refused message of a list: its `index` in the list, from 0, and the reason (`detail`).

    `kind`: `invalid_fields`, or `nothing_said` if the message has no text.
    """

    index: int
    kind: str
    detail: str


class AcceptedMessages(Written):
    """Messages that are in the log, in order. Each `event_id` is a message's id. `not_taken`: refused messages."""

    accepted: list[Accepted]
    not_taken: list[NotTaken] = []


class ForgottenSource(Written):
    """The result of `forget_source`: the numbers of forgotten memories, exchanges, and short-term memories.

    `exchanges` counts only the exchanges that were not memories.
    """

    user_id: str
    source: str
    memories: int
    exchanges: int
    short_term_memories: int


class RequestedSummary(Written):
    """A summary request that is in the log. The day's file has the summary once `run_id` is among its runs."""

    run_id: UUID
    user_id: str
    date: date
    messages: int
    topic: str
    partition: int
    offset: int


class Behind(Answer):
    """A part of a partition that is still being restored. `done`: the restored amount; `of_all`: the total amount."""

    partition: int
    part: str
    doing: str
    done: int
    of_all: int | None
    unit: str
    eta_seconds: float | None


class MayBePartial(Answer):
    """Fields that only an answer to a call with `partial=True` has.

    `partial`: whether data that may belong to the answer is still being restored. `behind`: the parts with this data.
    """

    partial: bool | None = None
    behind: list[Behind] | None = None


class Hit(Answer):
    """A memory or a recent exchange (state `short_term`) that answers a query. `relevance` 0-1, `score` 0-100.

    `source`: the authors of its content: `user`, `tool:search`, `token:app`, …; empty from older workers.
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
    """Hits, most relevant first.

    `better_elsewhere`: by state, the number of memories that are more relevant than all hits, but are no hits,
    because their states were not searched.
    """

    results: list[Hit]
    better_elsewhere: dict[str, int]


class SaidMessage(Answer):
    """A message in a window."""

    message_id: str
    role: str
    content: str
    timestamp: datetime
    name: str | None
    emotion: str | None


class Exchange(Answer):
    """A run of user messages, and the assistant messages that answer it."""

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
    """Exchanges, notes and memories that an assistant needs before it answers. `prompt`: all of them as one text."""

    notes: list[Note]
    memories: list[Hit]
    prompt: str


class StoredMemory(Answer):
    """A memory as it is now. `score` is its importance (0-100) after decay."""

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
    """A memory that was requested by its id."""


class Memories(MayBePartial):
    """A page of memories, oldest first.

    `total`: the number of all matching memories. `next`: the `after` of the next page; None on the last page.
    """

    memories: list[StoredMemory]
    total: int
    next: UUID | None


class PastEvent(Answer):
    """A change of a memory."""

    at: datetime
    event: str
    details: dict[str, Any]


class History(Answer):
    """All changes of a memory since its creation, oldest first."""

    id: UUID
    user_id: str
    events: list[PastEvent]


class Link(Answer):
    """A link of two memories; `direction` (out, in) is seen from the requested memory."""

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
    """A memory that is linked (`relation` is `explicit`) or similar (`semantic`). `similarity` is a cosine."""

    id: UUID
    memory: str
    state: str
    relation: str
    similarity: float
    kind: str | None
    weight: float | None
    direction: str | None


class Related(Answer):
    """The linked memories, by weight, followed by the similar memories."""

    id: UUID
    related: list[RelatedMemory]


class Day(Answer):
    """A day that has a summary, and the runs that wrote it."""

    date: date
    runs: list[UUID]


class WaitingSummary(Answer):
    """A summary that could not be written yet."""

    date: date
    run_id: UUID
    tries: int


class Summaries(Answer):
    """A user's days with a summary, in order, and the summaries that are still to be written."""

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
    """The parts of an exchange's score, in thousandths; `value` is the rating, 0-10."""

    reason: str
    fullness: int
    sentiment: int
    content: int
    value: int | None
    total: int


class WaitsFor(Answer):
    """An exchange is scored after this number of further `exchanges`, or when its session ends."""

    exchanges: int
    session_ends_at: datetime


class Decision(Answer):
    """The decision on an exchange. `why`: its reason. `change`: the changes that would lead to another decision."""

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
    """The decisions on the exchanges of a session, oldest first."""

    session_id: str
    user_id: str
    policy: str
    judge: str
    exchanges: int
    promote_threshold: int
    ended: bool
    decisions: list[Decision]


class StateCount(Answer):
    """A number of memories, and its percentage of all memories."""

    count: int
    percent: float


class DailyStates(Answer):
    """The number of memories in each state at the end of a UTC day."""

    day: date
    active: int
    cold: int
    deprecated: int


class States(Answer):
    """The number of memories in each state, for all users of the worker that answered."""

    at: datetime
    total: int
    states: dict[str, StateCount]
    daily: list[DailyStates]


class Reached(Answer):
    """The answer of `wait_for`: the writes can be read."""

    applied: bool
