"""Fields of questions: `reference_date`, `timezone` and `as_of`, which are times, and `explain`."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Annotated

from fastapi import HTTPException
from pydantic import AfterValidator, Field

from schemas.times import DAY_END, ZoneName, known_zone, parse_local
from streams.recall.dates import ReferenceDate
from streams.service import MemoryService


def _readable(value: str | int) -> str | int:
    parse_local(value, UTC)
    return value


GivenDate = Annotated[
    Annotated[str | int, AfterValidator(_readable)] | None,
    Field(
        description="the day or the moment of the question, from which answers are dated, such as 2026-03-14, "
        "ISO 8601 or epoch milliseconds; default: now"
    ),
]
GivenAsOf = Annotated[
    Annotated[str | int, AfterValidator(_readable)] | None,
    Field(
        description="only memories that held at this moment, or at the end of this day, in all states unless `state` "
        "is given, including memories that were superseded later"
    ),
]
GivenZone = Annotated[
    ZoneName | None,
    Field(description="the user's time zone, such as Europe/Oslo; default: `agents.summary.timezone`"),
]
Explain = Annotated[
    bool,
    Field(
        description="each result has `explain`: cosine and BM25 with their ranks; `rerank_score` and `rerank_rank` "
        "if a reranker has scored it (each model has its own scale); and what the question says of time: `times` "
        "(its windows), `order` (`earliest` or `latest` is `first`) and `anchor` (the event it counts from, with the "
        "`memory_id` of the memory that tells of it, and when that was; null if none does)"
    ),
]


def reference_of(service: MemoryService, day: str | int | None, zone: str | None) -> ReferenceDate:
    """Return the moment of a question, which its times are relative to, and from which the answer is dated."""
    try:
        return service.reference(day, None if zone is None else known_zone(zone))
    except ValueError as exc:  # at the first and the last day that there are, in some zones
        raise HTTPException(422, f"reference_date: {exc}") from exc


def asked_moment(given: str | int | None, zone: tzinfo) -> int | None:
    """Return the moment at which memories must have held (epoch ms): the end of a day that is given."""
    try:
        return None if given is None else parse_local(given, zone, DAY_END)
    except ValueError as exc:
        raise HTTPException(422, f"as_of: {exc}") from exc
