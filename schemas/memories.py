"""Long-term memories, their states and transitions, and search hits."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, NamedTuple, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, computed_field

from schemas.sources import SOURCES, sources_in
from schemas.times import LATEST_MS, iso


class State(StrEnum):
    """A memory's lifecycle state: a function of its score."""

    ACTIVE = "active"
    COLD = "cold"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True)
class Column:
    """The column of a memory's field in the tables `memories` and `archive`, with its SQL type.

    `filter` is the field's name in filters of searches; without one, no filter can test the field. If `ranked`, the
    rows that a search ranks have the field. Otherwise only the body has it, which is read for the memories of an
    answer. If not `compared`, two shards of the same log may have different values.
    """

    type: Literal["BIGINT", "BOOLEAN", "DOUBLE", "JSON", "TIMESTAMP", "UUID", "UUID[]", "VARCHAR", "VARCHAR[]"]
    filter: str = ""
    ranked: bool = False
    compared: bool = True


#: The metadata key for the time (epoch ms) at which a statement was said again, in a near-copy.
SAID_AGAIN: Final = "siltstone.said_at"
#: The metadata key for the `valid_from` and `valid_to` (epoch ms) that a superseded memory has by its user's word.
VALIDITY: Final = "siltstone.validity"
#: The metadata keys that are ignored in events, because only Siltstone sets them.
RESERVED: Final = frozenset({SOURCES, SAID_AGAIN, VALIDITY})
#: The metadata key with which a user says that a memory still holds, whatever a newer one states.
STILL_HOLDS: Final = "still_holds"


@dataclass(frozen=True, slots=True)
class Memory:
    """One long-term memory. Times are epoch milliseconds. `importance` is 0-100, as of `last_accessed`.

    The annotations are the table of a memory's fields: columns, search rows, bodies, filters, and the comparison of
    shards follow from it.
    """

    seq: Annotated[int, Column("BIGINT", ranked=True, compared=False)]
    id: Annotated[uuid.UUID, Column("UUID", filter="id")]
    user_id: Annotated[str, Column("VARCHAR")]
    session_id: Annotated[str | None, Column("VARCHAR", filter="session")]
    agent_id: Annotated[str | None, Column("VARCHAR", filter="agent")]
    text: Annotated[str, Column("VARCHAR")]
    kind: Annotated[str, Column("VARCHAR", filter="kind")]
    message_ids: Annotated[tuple[str, ...], Column("VARCHAR[]")]
    importance: Annotated[float, Column("DOUBLE", filter="importance", ranked=True)]
    created_at: Annotated[int, Column("TIMESTAMP", filter="created_at")]
    last_accessed: Annotated[int, Column("TIMESTAMP", ranked=True)]
    access_count: Annotated[int, Column("BIGINT", ranked=True)]
    state: Annotated[State, Column("VARCHAR", compared=False)]
    pinned: Annotated[bool, Column("BOOLEAN", filter="pinned", ranked=True)]
    meta: Annotated[dict[str, Any], Column("JSON")]
    summary_of: Annotated[tuple[uuid.UUID, ...], Column("UUID[]")] = ()
    summarized_by: Annotated[uuid.UUID | None, Column("UUID")] = None
    superseded_by: Annotated[uuid.UUID | None, Column("UUID")] = None
    topic: Annotated[str | None, Column("VARCHAR", filter="topic")] = None
    valid_from: Annotated[int | None, Column("TIMESTAMP")] = None
    valid_to: Annotated[int | None, Column("TIMESTAMP")] = None

    @property
    def said_at(self) -> int:
        """When it was said last (epoch ms). It is later than `created_at` if a near-copy was merged into it."""
        again = self.meta.get(SAID_AGAIN)
        return max(again, self.created_at) if isinstance(again, int) and again < LATEST_MS else self.created_at

    @property
    def held_from(self) -> int:
        """From when the memory holds (epoch ms): from its creation, if no other time is known.

        A memory that had ended before its creation ("I lived in Rome until 2019") held at all times before its end.
        """
        if self.valid_from is not None:
            return self.valid_from
        return 0 if self.valid_to is not None and self.valid_to <= self.created_at else self.created_at

    def held_at(self, moment: int) -> bool:
        """Return whether the memory held at a moment (epoch ms): from `held_from` on, and before `valid_to`."""
        return self.held_from <= moment and (self.valid_to is None or moment < self.valid_to)

    @property
    def still_holds(self) -> bool:
        """True if its user says that the memory holds, whatever a newer one states."""
        return self.meta.get(STILL_HOLDS) is True

    @property
    def current(self) -> bool:
        """True if neither a summary nor a newer memory replaces this memory."""
        return self.summarized_by is None and self.superseded_by is None


def without_reserved(meta: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without the keys that only Siltstone sets."""
    return meta if RESERVED.isdisjoint(meta) else {key: meta[key] for key in meta if key not in RESERVED}


#: The column of each field of `Memory`, in the order of the fields.
MEMORY_COLUMNS: Final[dict[str, Column]] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Memory, include_extras=True).items()
}


#: Fields of `Memory` that the API gives another name.
_API_NAMES: Final = {"text": "memory", "meta": "metadata"}


def api_fields(memory: Memory, model: type[BaseModel]) -> dict[str, Any]:
    """Return the values of those fields of `model` that are fields of a memory, in the form of the API.

    In the API, times are ISO 8601, and `text` and `meta` have the names `memory` and `metadata`.
    """
    names, values_of, converted = _shared_fields(model)
    fields = dict(zip(names, values_of(memory), strict=True))
    for name, convert in converted:
        if fields[name] is not None:
            fields[name] = convert(fields[name])
    return fields


class _SharedFields(NamedTuple):
    """The fields that a model and `Memory` share: their names in the model, their values, and conversions by name."""

    names: Sequence[str]
    values_of: Callable[[Memory], Sequence[Any]]
    converted: Sequence[tuple[str, Callable[[Any], Any]]]


@functools.cache
def _shared_fields(model: type[BaseModel]) -> _SharedFields:
    of_memory = {_API_NAMES.get(field, field): field for field in MEMORY_COLUMNS if field != "state"}
    shared = {name: of_memory[name] for name in model.model_fields if name in of_memory}
    forms = [(name, _API_FORM.get(MEMORY_COLUMNS[field].type)) for name, field in shared.items()]
    return _SharedFields(
        tuple(shared), attrgetter(*shared.values()), [(name, form) for name, form in forms if form is not None]
    )


_API_FORM: Final[dict[str, Callable[[Any], Any]]] = {"TIMESTAMP": iso, "UUID[]": list, "VARCHAR[]": list}


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


VALID_FROM: Final = "from when the memory holds, if that is not its creation"
VALID_TO: Final = "until when the memory held, if that is known: a newer one replaced it"


class TimeWindow(BaseModel):
    """A window of time from `from` until before `to`, and the words that name it, such as "last Friday"."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, serialize_by_alias=True)

    text: str
    from_: str = Field(alias="from")
    to: str
    grain: str = Field(description="what the words name: `hour`, `day`, `week`, `month`, `season` or `year`")


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
    topic: str | None = None
    pinned: bool = False
    valid_from: str | None = Field(default=None, description=VALID_FROM)
    valid_to: str | None = Field(default=None, description=f"{VALID_TO}, or a newer statement outdated it")
    updated_by: uuid.UUID | None = Field(default=None, description="id of that newer memory")
    when: str | None = Field(
        default=None,
        description="the day when it was said, and how long ago that is, in Chinese if the memory is; null if dates "
        "are switched off",
    )
    times: list[TimeWindow] = Field(
        default=[],
        description="the times that the first 1,000 characters of its text speak of, at most four, in English and "
        "Chinese, relative to when it was said; empty from the 21st hit on, and if dates are switched off",
    )
    explain: dict[str, Any] | None = None

    @computed_field  # type: ignore[prop-decorator]  # as pydantic says: mypy knows no decorated properties
    @property
    def source(self) -> list[str]:
        """Who wrote its content: user, assistant, tool, token:… (schemas/sources.py)."""
        return sources_in(self.metadata, self.kind)


class MemoryFields(BaseModel):
    """The fields of a memory in answers of the API. `score` and `state` are current."""

    id: uuid.UUID
    memory: str
    kind: str
    importance: float
    score: float
    state: State
    created_at: str
    last_accessed: str
    access_count: int
    pinned: bool
    session_id: str | None
    agent_id: str | None
    message_ids: list[str]
    metadata: dict[str, Any]
    summary_of: list[uuid.UUID]
    summarized_by: uuid.UUID | None
    superseded_by: uuid.UUID | None
    topic: str | None = None
    valid_from: str | None = Field(default=None, description=VALID_FROM)
    valid_to: str | None = Field(default=None, description=VALID_TO)

    @computed_field  # type: ignore[prop-decorator]  # as pydantic says: mypy knows no decorated properties
    @property
    def source(self) -> list[str]:
        """The sources of the memory's text: user, assistant, tool, or token:… (see schemas/sources.py)."""
        return sources_in(self.metadata, self.kind)
