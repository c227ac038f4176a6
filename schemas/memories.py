"""Long-term memories, their states and transitions, and search hits."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field

from schemas.sources import sources_in


class State(StrEnum):
    """A memory's lifecycle state: a function of its score."""

    ACTIVE = "active"
    COLD = "cold"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True)
class Memory:
    """One long-term memory. Times are epoch milliseconds. `importance` is 0-100, as of `last_accessed`."""

    seq: int
    id: uuid.UUID
    user_id: str
    session_id: str | None
    agent_id: str | None
    text: str
    kind: str
    message_ids: tuple[str, ...]
    importance: float
    created_at: int
    last_accessed: int
    access_count: int
    state: State
    pinned: bool
    meta: dict[str, Any]
    summary_of: tuple[uuid.UUID, ...] = ()
    summarized_by: uuid.UUID | None = None
    superseded_by: uuid.UUID | None = None

    @property
    def current(self) -> bool:
        """True if neither a summary nor a newer memory replaces this memory."""
        return self.summarized_by is None and self.superseded_by is None


def shown_score(score: float) -> float:
    """Return the score, rounded down to two decimals, so that rounding does not move it up into the next state.

    If a state's border has more than two decimals, the rounded score may be below the border although the score is
    not.
    """
    nearest = round(score, 2)
    return nearest if nearest <= score else round(nearest - 0.01, 2)


class Transition(BaseModel):
    """A memory changed its state, was archived, restored, removed or forgotten: the audit trail.

    `from` and `to` are states, or `archived`; `to` may be `removed` or `forgotten`.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    memory_id: uuid.UUID
    user_id: str
    from_: str = Field(alias="from")
    to: str
    score: float
    at: str = Field(description="ISO 8601, UTC")
    reason: str


#: The minimum relevance of the hits that people see by default. docs/reference.md explains the value.
SHOWN_FROM: Final = 0.3
#: The state that answers show for an exchange of a short-term window that has not become a memory. It is not a
#: `State`, because it does not depend on a score.
SHORT_TERM: Final = "short_term"
ShownState = State | Literal["short_term"]


class SearchHit(BaseModel):
    """A memory that answers a query, or an exchange of a short-term window.

    `relevance` is 0-1 and orders the hits; `score` is 0-100, now. An exchange is in state `short_term` and has the id
    that its memory would have; its importance and score are ten times the local estimator's value.
    """

    model_config = ConfigDict(frozen=True)

    id: uuid.UUID
    memory: str
    relevance: float
    score: float
    state: ShownState
    importance: float
    kind: str
    created_at: str
    session_id: str | None
    agent_id: str | None
    message_ids: list[str]
    metadata: dict[str, Any]
    superseded_by: uuid.UUID | None = None
    summarized_by: uuid.UUID | None = None
    explain: dict[str, Any] | None = None

    @computed_field  # type: ignore[prop-decorator]  # as pydantic says: mypy knows no decorated properties
    @property
    def source(self) -> list[str]:
        """Who wrote its content: user, assistant, tool, token:… (schemas/sources.py)."""
        return sources_in(self.metadata, self.kind)
