"""The route that searches a user's memories and short-term windows."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, GetPydanticSchema
from pydantic_core import core_schema

from schemas.ids import Id
from schemas.memories import SHORT_TERM, SearchHit, ShownState, State
from streams.doors.http.consistency import AtLeast, Consistency
from streams.doors.http.partial import MEANING, Allowed, MayBePartial, Partial, said
from streams.doors.http.reference import Explain, GivenAsOf, GivenDate, GivenZone, asked_moment, reference_of
from streams.recall.filtering import Filter
from streams.recall.query import Among, Query
from streams.service import MemoryService

#: Filters of a JSON body: the schema is that of the list or the object, the value has the parsed conditions.
Filters = Annotated[
    tuple[Filter, ...],
    GetPydanticSchema(
        lambda _, schema_of: core_schema.no_info_after_validator_function(
            Filter.all_of, schema_of(list[str] | dict[str, Any])
        )
    ),
]


class SearchRequest(BaseModel):
    """A search of one user's memories. Names of fields may also be written in camelCase."""

    model_config = ConfigDict(populate_by_name=True, extra="forbid")

    user_id: Annotated[Id, Field(validation_alias=AliasChoices("user_id", "userId"))]
    query: Annotated[str, Field(min_length=1, max_length=32_768)]
    top_k: Annotated[int | None, Field(ge=1, le=1000, validation_alias=AliasChoices("top_k", "topK", "limit"))] = None
    include_cold: Annotated[bool, Field(validation_alias=AliasChoices("include_cold", "includeCold"))] = False
    include_all: Annotated[bool, Field(validation_alias=AliasChoices("include_all", "includeAll"))] = False
    state: ShownState | None = None
    include_short_term: Annotated[
        bool,
        Field(
            validation_alias=AliasChoices("include_short_term", "includeShortTerm"),
            description="also search the user's windows for exchanges that are not memories; ignored if `state` is "
            "given",
        ),
    ] = True
    min_relevance: Annotated[
        float, Field(ge=0, le=1, validation_alias=AliasChoices("min_relevance", "minRelevance"))
    ] = 0
    filters: Filters = Field(
        default=(), description='["importance:gte:80"] or {"importance": {"gte": 80}}: applied before ranking'
    )
    explain: Explain = False
    touch: bool = Field(default=True, description="false: results do not count as accessed (evaluation, prefetch)")
    reference_date: Annotated[GivenDate, Field(validation_alias=AliasChoices("reference_date", "referenceDate"))] = (
        None
    )
    timezone: GivenZone = None
    as_of: Annotated[GivenAsOf, Field(validation_alias=AliasChoices("as_of", "asOf"))] = None
    partial: Allowed = Field(default="never", description=f"{MEANING}. Also a query parameter")


class SearchResponse(MayBePartial):
    results: list[SearchHit]
    reference_date: date | None = Field(description="the user's day from which results are dated; null without dates")
    better_elsewhere: dict[State, int] = Field(
        description="by state, the number of memories in states that were not requested that are more relevant than "
        "every result, and relevant enough to be shown (0.3); at most top_k are counted"
    )


def search_routes(service: MemoryService) -> APIRouter:
    """`/v1/search`."""
    api = APIRouter()
    consistency, settings = Consistency(service), service.settings

    @api.post("/v1/search", tags=["memories"])
    async def search(request: SearchRequest, allowed: Partial, at_least: AtLeast) -> SearchResponse:
        """The user's memories that answer the query, most relevant first, and exchanges that are not memories.

        Exchanges of all sessions can be found as soon as they are in their windows, until they expire. An exchange
        has the state `short_term`, and the id that its memory would have. If this memory exists, the exchange is not
        returned. If the query is a question that was also sent as a message and is not answered yet, this message is
        not returned either. With `as_of`, the results are what held at that time, and statements that were made later
        update none of them. A memory with a relevance of at least `lifecycle.access_min_relevance` counts as
        accessed, unless `touch` is false.

        While the user's partition is being recovered, the response waits, or is 503 if the recovery takes too long.
        With `partial=allow`, it is made from the data that is already recovered: `partial` and `behind` say what is
        missing.
        """
        allowed = allowed or request.partial == "allow"
        wanted = request.state
        reference = reference_of(service, request.reference_date, request.timezone)
        as_of = asked_moment(request.as_of, reference.zone)
        among = Among.of(
            state=wanted,
            include_all=request.include_all,
            include_cold=request.include_cold,
            as_of=as_of is not None,
        )
        query = Query(
            request.user_id,
            request.query,
            request.top_k or settings.long_term.top_k,
            among.states,
            request.explain,
            replaced=among.replaced,
            min_relevance=request.min_relevance,
            filters=request.filters,
            touch=request.touch,
            short_term=request.include_short_term if wanted is None else wanted == SHORT_TERM,
            reference=reference,
            as_of=as_of,
        )
        await consistency.reached(request.user_id, at_least)
        found = await service.search(query, allowed)
        return SearchResponse(
            results=list(found),
            reference_date=reference.shown_day,
            better_elsewhere=dict(found.elsewhere),
            **said(allowed, found.behind),
        )

    return api
