"""The types of the client's answers to writes, and the base class of all answers."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """The base class of answers. An answer is frozen, because it describes the state at one moment."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Written(Answer):
    """The answer to a write that is in the log.

    To read this write, pass the answer or its `token` to the read as `at_least`. `token` is None if nothing was
    written. `applied` is None if the call did not wait. Otherwise it is true if the effect can be read.
    """

    token: str | None
    applied: bool | None = None


class Accepted(Written):
    """A write's place in the log. After `remember`, `event_id` is the memory's id, unless `memory_id` was given."""

    event_id: str
    topic: str
    partition: int
    offset: int


class NotTaken(Answer):
    """A message that `add` refused: its `index` in the given list, from 0, and the reason (`detail`).

    `kind` is `invalid_fields`, or `nothing_said` if the message has no text.
    """

    index: int
    kind: str
    detail: str


class AcceptedMessages(Written):
    """The answer of `add`: the `accepted` messages in order (`event_id` is the message id), and the refused ones."""

    accepted: list[Accepted]
    not_taken: list[NotTaken] = []


class ForgottenSource(Written):
    """The answer of `forget_source`: the numbers of forgotten memories, exchanges, and short-term memories.

    `exchanges` counts only the exchanges that had not become memories.
    """

    user_id: str
    source: str
    memories: int
    exchanges: int
    short_term_memories: int


class RequestedSummary(Written):
    """The answer of `summarize`. The summary is written as soon as `DaySummary.runs` contains this `run_id`."""

    run_id: UUID
    user_id: str
    date: date
    messages: int
    topic: str
    partition: int
    offset: int
