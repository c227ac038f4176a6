"""The types of the client's answers. Fields have the API's names; unknown fields of a newer worker are ignored."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from siltstone_client.linked import Link as Link
from siltstone_client.linked import Links as Links
from siltstone_client.linked import Related as Related
from siltstone_client.linked import RelatedMemory as RelatedMemory
from siltstone_client.written import Accepted as Accepted
from siltstone_client.written import AcceptedMessages as AcceptedMessages
from siltstone_client.written import Answer as Answer
from siltstone_client.written import ForgottenSource as ForgottenSource
from siltstone_client.written import NotTaken as NotTaken
from siltstone_client.written import RequestedSummary as RequestedSummary
from siltstone_client.written import Written as Written


class Behind(Answer):
    """A part of a partition that is being restored: `done` of `of_all` (None if it is not known yet), in `unit`."""

    partition: int
    part: str
    doing: str
    done: int
    of_all: int | None
    unit: str
    eta_seconds: float | None


class MayBePartial(Answer):
    """Fields that only an answer to a call with `partial=True` has.

    `partial` is true if data that may belong to the answer is still being restored. `behind` lists the parts with it.
    """

    partial: bool | None = None
    behind: list[Behind] | None = None


class TimeWindow(Answer):
    """A window of time `[from_, to)` that a memory's text speaks of, and the words (`text`) that name it.

    `grain` is what they name: `hour`, `day`, `week`, `month`, `season` or `year`.
    """

    text: str
    from_: datetime = Field(alias="from")
    to: datetime
    grain: str


class Hit(Answer):
    """A memory or a recent exchange (state `short_term`) that answers a query. `relevance` is 0-1, `score` 0-100.

    `source` lists the authors of the content, such as `user` or `tool:search`. `when` is the day when it was said,
    and how long ago that is, as text; None if the worker's setting `recall.dates` is off. Answers of older workers
    have neither. A memory holds from `valid_from`, by default its creation, until `valid_to`: if a newer memory
    (`updated_by`) states something else about the same, that is its time. `times` are those that its text speaks of,
    in English and Chinese, relative to when it was said.
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
    source: list[str] = Field(default_factory=list)
    metadata: dict[str, Any]
    superseded_by: UUID | None = None
    summarized_by: UUID | None = None
    topic: str | None = None
    pinned: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    updated_by: UUID | None = None
    when: str | None = None
    times: list[TimeWindow] = Field(default_factory=list)
    explain: dict[str, Any] | None = None


class Found(MayBePartial):
    """The answer of `search`: the hits, most relevant first.

    `better_elsewhere` counts, by state, memories that are more relevant than all hits, in states that were not
    searched. `reference_date` is the user's day from which the hits are dated.
    """

    results: list[Hit]
    reference_date: date | None = None
    better_elsewhere: dict[str, int]


class SaidMessage(Answer):
    """A chat message in a session's short-term window."""

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


class LeftOut(Answer):
    """The numbers of memories, notes and exchanges that match, but do not fit into `max_tokens`."""

    memories: int = 0
    notes: int = 0
    exchanges: int = 0


class ProfileLine(Answer):
    """A sentence of the user, and the memories that have it. `due` is the end of a task's time."""

    text: str
    memory_ids: list[UUID]
    said_at: datetime
    due: datetime | None = None


class ProfileSection(Answer):
    """A part of a profile: pinned, about, people, preferences or tasks.

    With `reworded`, the lines are a model's words. Answers of older workers are in the user's words.
    """

    part: str
    lines: list[ProfileLine]
    reworded: bool = False


class ShownProfile(Answer):
    """Who the user is. `text` has all sections, and `left_out` counts the lines for which there was no room."""

    sections: list[ProfileSection]
    text: str
    tokens: int
    left_out: int


class Profile(ShownProfile, MayBePartial):
    """The answer of `profile`. `reference_date` is the user's day on which tasks are not past."""

    user_id: str
    reference_date: date | None = None


class Context(Exchanges, MayBePartial):
    """The exchanges, notes and memories for an assistant's next answer. `prompt` has all of them as one text.

    `prompt_tokens` is the prompt's estimated length, and None in answers of older workers.
    """

    notes: list[Note]
    memories: list[Hit]
    prompt: str
    prompt_tokens: int | None = None
    left_out: LeftOut = LeftOut()
    reference_date: date | None = None
    profile: ShownProfile | None = None


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
    source: list[str] = Field(default_factory=list)
    metadata: dict[str, Any]
    summary_of: list[UUID]
    summarized_by: UUID | None
    superseded_by: UUID | None
    topic: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


class OneMemory(StoredMemory, MayBePartial):
    """A memory that was requested by its id."""


class Memories(MayBePartial):
    """A page of memories, oldest first.

    `total` is the number of all matching memories. `next` is the `after` of the next page, or None on the last page.
    """

    memories: list[StoredMemory]
    total: int
    next: UUID | None


class PastEvent(Answer):
    """One change in the history of a memory."""

    at: datetime
    event: str
    details: dict[str, Any]


class History(Answer):
    """All changes of a memory since its creation, oldest first."""

    id: UUID
    user_id: str
    events: list[PastEvent]


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
    """The file of a day as Markdown, and the runs that wrote it.

    `merged` is the summary of the whole day with which the file begins; None if it has none.
    """

    user_id: str
    date: date
    markdown: str
    merged: str | None = None
    runs: list[UUID]


class Parts(Answer):
    """The parts of an exchange's score, in thousandths. `value` is the rating (0-10), or None without a rating."""

    reason: str
    fullness: int
    sentiment: int
    content: int
    value: int | None
    total: int


class WaitsFor(Answer):
    """The condition for scoring an exchange: `exchanges` more exchanges, or the end of the session."""

    exchanges: int
    session_ends_at: datetime


class Decision(Answer):
    """The decision on an exchange, its reason (`why`), and the `change` that would lead to another decision."""

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
    """The number of memories in one state, and its percentage of all memories."""

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
