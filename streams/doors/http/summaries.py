"""Routes that request, list and read daily summaries.

A request is written to the log as a record, like the requests that workers make themselves. The worker that owns the
user's partition has the files of the user's summaries.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from schemas.conversations import SPEAKERS
from schemas.ids import Id
from schemas.places import Place
from streams.doors.http.accepted import Written
from streams.doors.http.consistency import Consistency, Wait
from streams.doors.http.refusals import because
from streams.intake.rules.decision_wording import lasting
from streams.service import MemoryService
from streams.shards.user_shards import WAIT_SECONDS
from streams.summaries.requests import summary_request
from tables.summaries.day_files import merged_in

_WRITTEN_OUT = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _written_out(given: Any) -> Any:
    """Accept a date only in the form YYYY-MM-DD. pydantic alone would also accept numbers and other forms."""
    if not isinstance(given, str) or not _WRITTEN_OUT.fullmatch(given):
        raise ValueError("must have the form YYYY-MM-DD")
    return given


Day = Annotated[date, BeforeValidator(_written_out)]


class NewSummary(BaseModel):
    """A request for the summary of a user's day. Names of fields may also be written in camelCase.

    A client that sets `date` and `run_id` can safely send the request again.
    """

    model_config = ConfigDict(populate_by_name=True, extra="forbid")

    user_id: Annotated[Id, Field(validation_alias=AliasChoices("user_id", "userId"))]
    date: Day | None = Field(default=None, description="by default, the day of the user's newest message")
    run_id: uuid.UUID = Field(default_factory=uuid.uuid4, validation_alias=AliasChoices("run_id", "runId"))


class RequestedSummary(Written):
    """A request is in the log. Its summary is written when `run_id` appears in `runs` of the day's file."""

    run_id: uuid.UUID
    user_id: str
    date: str
    messages: int = Field(description="number of messages in the request")
    topic: str
    partition: int
    offset: int


class ShownDay(BaseModel):
    date: str
    runs: list[uuid.UUID] = Field(description="runs in the day's file, in the file's order")


class WaitingSummary(BaseModel):
    date: str
    run_id: uuid.UUID
    tries: int


class SummariesResponse(BaseModel):
    user_id: str
    days: list[ShownDay]
    waiting: list[WaitingSummary] = Field(
        description="failed summaries of any day; they are tried again with the user's next request"
    )


class DayResponse(BaseModel):
    user_id: str
    date: str
    markdown: str
    merged: str | None = Field(
        description="the summary of the whole day with which the file begins; null if it has none"
    )
    runs: list[uuid.UUID]


def summary_routes(service: MemoryService) -> APIRouter:
    """`/v1/summaries`."""
    api = APIRouter(tags=["summaries"])
    files, memory = service.summaries.files, service.settings.memory
    reads = Consistency(service).reads

    @api.post(
        "/v1/summaries",
        status_code=202,
        responses=because(404, "The windows have no messages of that day"),
    )
    async def ask(wanted: NewSummary, wait: Wait) -> RequestedSummary:
        """Request a summary of all messages of a day that are in the user's windows.

        Messages that were already summarized are included.
        """
        day = wanted.date or service.sessions.newest_day(wanted.user_id)
        said = service.sessions.said_on(wanted.user_id, day)
        if not any(message.role in SPEAKERS for _, message in said):
            raise HTTPException(
                404,
                f"the windows have no messages to or by {wanted.user_id} on {day}: they keep the newest "
                f"{memory.capacity} exchanges of a session for {lasting(memory.ttl_seconds)} (memory.capacity, "
                "memory.ttl_seconds); an earlier day was summarized when it ended, by count, or on request: see "
                "GET /v1/summaries",
            )
        request = summary_request(wanted.run_id, wanted.user_id, day, "manual", said)

        async def write() -> list[Place]:
            return [await service.writes.request_summary(request)]

        (place,), applied = await service.writes.applied(wanted.user_id, wait, write)
        return RequestedSummary(
            run_id=request.run_id,
            user_id=request.user_id,
            date=request.date,
            messages=len(request.messages),
            topic=place.topic,
            partition=place.partition,
            offset=place.offset,
            token=place.token,
            applied=applied,
        )

    @api.get("/v1/summaries", dependencies=reads)
    async def days(
        user_id: Id,
        first: Annotated[Day, Query(alias="from")] = date.min,
        last: Annotated[Day, Query(alias="to")] = date.max,
    ) -> SummariesResponse:
        """The days that have a file, in order, with the runs that wrote each file; and the pending summaries."""
        if first > last:
            raise HTTPException(422, "from: must not be after `to`")
        partition = service.users.partition_here(user_id)

        def found() -> list[ShownDay]:
            return [
                ShownDay(date=day.isoformat(), runs=list(files.runs(user_id, day)))
                for day in files.dates(user_id, first, last)
            ]

        async with asyncio.timeout(WAIT_SECONDS):
            shown = await asyncio.to_thread(found)
        waiting = [
            WaitingSummary(date=one.request.date, run_id=one.request.run_id, tries=one.tries)
            for one in service.pending_summaries.of_user(partition, user_id)
        ]
        return SummariesResponse(user_id=user_id, days=shown, waiting=waiting)

    @api.get("/v1/summaries/{date}", dependencies=reads, responses=because(404, "There is no file of that day"))
    async def one(day: Annotated[Day, Path(alias="date")], user_id: Id) -> DayResponse:
        """The day's file, with the runs that wrote it, and the summary of the whole day from it."""
        service.users.partition_here(user_id)

        def found() -> tuple[list[uuid.UUID], str | None]:
            # The runs are read before the text. So the text contains all of these runs, and may contain a newer run.
            runs = list(files.runs(user_id, day))
            return runs, files.read(user_id, day)

        async with asyncio.timeout(WAIT_SECONDS):
            runs, markdown = await asyncio.to_thread(found)
        if markdown is None:
            raise HTTPException(404, f"there is no summary of {day} for user {user_id}: POST /v1/summaries makes one")
        return DayResponse(
            user_id=user_id, date=day.isoformat(), markdown=markdown, merged=merged_in(markdown), runs=runs
        )

    return api
