"""Lists of a user's memories, page by page and with filters."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from fastapi import Depends, HTTPException, Query

from schemas.lifecycle import score_of, state_of
from schemas.memories import Memory, State
from schemas.settings import LifecycleSettings
from streams.doors.http.reference import GivenAsOf
from streams.recall.filtering import Condition, Filter, matching
from streams.recall.query import Among
from streams.runtime.cancellation import cancellable
from tables.memories.catalog.archive import Archived
from tables.memories.items import is_expired
from tables.memories.shard import Shard

T = TypeVar("T")

Filters = Annotated[list[str], Query(alias="filter", description="field:operator:value; all must match")]
PageSize = Annotated[int, Query(ge=1, le=1000)]
After = Annotated[uuid.UUID | None, Query(description="list the memories after this one")]


def _among(
    state: State | None = None,
    include_cold: bool = False,
    include_all: bool = False,
    as_of: GivenAsOf = None,
    cold: Annotated[bool, Query(alias="includeCold", include_in_schema=False)] = False,
    all_states: Annotated[bool, Query(alias="includeAll", include_in_schema=False)] = False,
) -> Among:
    return Among.of(
        state=state,
        include_all=include_all or all_states,
        include_cold=include_cold or cold,
        as_of=as_of is not None,
    )


#: The memories to list. They are given by the same parameters as in a search. By default, only active memories are
#: listed that no other memory replaces, and with `as_of` all. The names of the parameters may also be
#: written in camelCase.
Listed = Annotated[Among, Depends(_among)]


def conditions_of(filters: list[str]) -> Sequence[Filter]:
    """Parse the filters. Raises an `HTTPException` (422) if one cannot be parsed."""
    try:
        return Filter.all_of(filters)
    except ValueError as exc:
        raise HTTPException(422, str(exc)) from exc


@dataclass(frozen=True, slots=True)
class PageQuery:
    """A request for one page of a user's memories.

    The page begins after the memory `after` and has at most `limit` memories that match all conditions. `states` are
    the states of these memories at the time `now` (epoch ms). Unless `replaced`, no other memory replaces them.
    """

    user_id: str
    conditions: Sequence[Condition]
    limit: int
    after: uuid.UUID | None
    states: frozenset[State] = frozenset(State)
    now: int = 0
    replaced: bool = True


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of memories. `total` is the number of memories on all pages.

    `next_after` is the value of `PageQuery.after` for the next page, or None if this is the last page.
    """

    memories: Sequence[T]
    total: int
    next_after: uuid.UUID | None


def page_of_memories(shard: Shard, wanted: PageQuery, lifecycle: LifecycleSettings) -> Page[Memory]:
    """Return one page of a user's memories, oldest first.

    This runs on the shard's thread instead of the event loop, because a user may have thousands of memories.
    """
    found = [
        memory
        for memory in matching(cancellable(shard.memories_of(wanted.user_id)), wanted.conditions)
        if state_of(score_of(memory, wanted.now, lifecycle), lifecycle) in wanted.states
        and (wanted.replaced or memory.current)
        and not is_expired(memory, wanted.now)
    ]
    return _page(found, wanted, lambda memory: memory.id)


def page_of_archive(shard: Shard, wanted: PageQuery) -> Page[Archived]:
    """Return one page of a user's archived memories in all states, oldest first. This runs on the shard's thread."""
    found = [
        one
        for one in cancellable(shard.archive.listed(wanted.user_id))
        if all(condition.matches(one.memory) for condition in wanted.conditions)
    ]
    return _page(found, wanted, lambda one: one.memory.id)


def _page(found: Sequence[T], wanted: PageQuery, id_of: Callable[[T], uuid.UUID]) -> Page[T]:
    start = 0
    if wanted.after is not None:
        start = next((place + 1 for place, one in enumerate(found) if id_of(one) == wanted.after), len(found))
    page = list(found[start : start + wanted.limit])
    return Page(page, len(found), id_of(page[-1]) if start + wanted.limit < len(found) else None)
