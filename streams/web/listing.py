"""Memories page by page, with filters."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, TypeVar

from fastapi import HTTPException, Query

from streams.rules.filtering import Filter
from streams.web.owned import ShownMemory

S = TypeVar("S", bound=ShownMemory)

Filters = Annotated[list[str], Query(alias="filter", description="field:operator:value; all must match")]
PageSize = Annotated[int, Query(ge=1, le=1000)]
After = Annotated[uuid.UUID | None, Query(description="read on after this memory")]


def conditions_of(filters: list[str]) -> Sequence[Filter]:
    """What the filters say; 422 where one says nothing."""
    try:
        return Filter.all_of(filters)
    except ValueError as exc:
        raise HTTPException(422, str(exc)) from exc


def page_of(found: Sequence[S], limit: int, after: uuid.UUID | None) -> tuple[list[S], uuid.UUID | None]:
    """The page behind `after`, and what the next one is behind; None at the end."""
    start = 0
    if after is not None:
        start = next((place + 1 for place, memory in enumerate(found) if memory.id == after), len(found))
    page = list(found[start : start + limit])
    return page, page[-1].id if start + limit < len(found) else None
