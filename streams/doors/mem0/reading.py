"""The methods of mem0's API that read: `search`, `get_all`, `get`, `history` and `users`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import Field, model_validator

from schemas.errors import NotReady
from schemas.memories import Memory, State
from schemas.times import iso
from streams.doors.http.forwarding import FORWARDED, Forwarding
from streams.doors.importing.chats import moment
from streams.doors.mem0.conditions import AnyOf
from streams.doors.mem0.entries import Entries, Entry, of_hit
from streams.doors.mem0.filters import Asked, asked
from streams.doors.mem0.owners import Owners
from streams.doors.mem0.wire import Body, Reader, WireRoute, refused
from streams.recall.dates import ReferenceDate
from streams.recall.filtering import Condition, Filter
from streams.recall.query import Query as Question
from streams.service import MemoryService
from tables.memories.catalog.changes import Done, Holdings

Page = Annotated[int, Query(ge=1, le=1_000_000)]
PageSize = Annotated[int, Query(ge=1, le=1000)]


class Filtered(Body):
    """The fields that `search` and `get_all` share. `filters` names the user, as mem0 requires."""

    filters: dict[str, Any] = Field(default={}, description="mem0's filters, which name the user")
    categories: list[str] = Field(default=[], description="the memory has at least one of them")
    show_expired: bool = Field(default=False, description="no effect: nothing expires here")
    latest_only: bool = Field(default=True, description="false: also superseded memories")

    @model_validator(mode="after")
    def _readable(self) -> Filtered:
        asked(self.filters)
        return self

    def asked(self) -> Asked:
        user_id, conditions = asked(self.filters)
        return Asked(user_id, (*conditions, *self.more()))

    def more(self) -> Sequence[Condition]:
        """Return the conditions from all fields of the body except `filters`."""
        within = [Filter.of("metadata.categories", "contains", one) for one in self.categories]
        return [AnyOf(tuple(within))] if within else []


class SearchBody(Filtered):
    query: Annotated[str, Field(min_length=1, max_length=32_768)]
    top_k: Annotated[int, Field(ge=1, le=1000)] = 10
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.1
    fields: list[str] = Field(default=[], description="fields to return of each result; the id is always returned")
    reference_date: int | float | str | None = Field(
        default=None, description="when the question is asked: a day, Unix time or ISO 8601; default: now"
    )

    def asked_at(self, service: MemoryService) -> ReferenceDate:
        """Return when the question is asked. Raises an `HTTPException` (400) if `reference_date` is not a time."""
        given = self.reference_date
        if isinstance(given, float) or str(given).isdecimal():
            given = moment(given) or str(given)  # what is no time is refused below
        try:
            return service.reference(given)
        except ValueError as exc:
            raise refused(f"reference_date: {exc}") from exc


class ListBody(Filtered):
    start_date: str | None = None
    end_date: str | None = None

    @model_validator(mode="after")
    def _dates(self) -> ListBody:
        self.more()
        return self

    def more(self) -> Sequence[Condition]:
        bounds = (("gte", self.start_date), ("lte", self.end_date))
        dates = [Filter.of("created_at", name, date) for name, date in bounds if date is not None]
        return [*super().more(), *dates]


def reading_routes(service: MemoryService, forwarding: Forwarding, owners: Owners) -> APIRouter:
    """Return the routes that read, for this worker's users.

    If a request has a memory id but no user, and this worker does not find the id, the other workers are asked.
    """
    api = APIRouter(tags=["mem0"], route_class=WireRoute)
    entries = Entries(service)

    @api.post("/v3/memories/search/")
    async def search(body: SearchBody, caller: Reader) -> dict[str, Any]:
        """Memories in every state that answer the query, and exchanges that are not memories yet."""
        named, conditions = body.asked()
        user_id = caller.user(named)
        query = Question(
            user_id,
            body.query,
            body.top_k,
            frozenset(State),
            replaced=not body.latest_only,
            min_relevance=body.threshold,
            filters=conditions,
            reference=body.asked_at(service),
        )
        hits, edits = await service.search(query), await entries.edits(user_id)
        results = [of_hit(hit, user_id, edits) for hit in hits]
        owners.showed(user_id, results)
        if body.fields:
            wanted = {"id", *body.fields}
            results = [{name: value for name, value in one.items() if name in wanted} for one in results]
        return {"results": results}

    @api.post("/v3/memories/")
    async def get_all(body: ListBody, caller: Reader, page: Page = 1, page_size: PageSize = 100) -> dict[str, Any]:
        """The user's memories, newest first, page by page, including exchanges that are not memories yet."""
        named, conditions = body.asked()
        user_id = caller.user(named)
        found = await entries.of_user(user_id, conditions, replaced=not body.latest_only)
        start = (page - 1) * page_size
        results = await entries.shown(user_id, found[start : start + page_size])
        owners.showed(user_id, results)
        return paged(results, len(found), "/v3/memories/", page, page_size)

    @api.get("/v1/memories/{memory_id}/")
    async def get(memory_id: uuid.UUID, caller: Reader) -> Entry:
        user_id = await owners.user_of(caller, memory_id)
        (shown,) = await entries.shown(user_id, [await entries.one(user_id, memory_id)])
        return shown

    @api.get("/v1/memories/{memory_id}/history/")
    async def history(memory_id: uuid.UUID, caller: Reader) -> list[dict[str, Any]]:
        """The history of a memory: its creation and its edits, oldest first."""
        user_id = await owners.user_of(caller, memory_id)
        memory, _ = await entries.one(user_id, memory_id)
        return past(memory, await service.users.ask(user_id, lambda shard: shard.history.of(user_id, memory.id)))

    @api.get("/v1/entities/")
    async def users(request: Request, caller: Reader, page: Page = 1, page_size: PageSize = 1000) -> dict[str, Any]:
        """The users of all workers who have memories. With a token for some users, only those users are listed."""
        async with service.users.own_shards():
            held = [one for part in await service.shards.call_each(lambda shard: shard.users.all()) for one in part]
        found = [_user(one) for one in held if caller.users is None or one.user_id in caller.users]
        if FORWARDED in request.headers:  # the worker that forwarded this request merges and pages the lists
            return paged(found, len(found), "/v1/entities/", 1, max(1, len(found)))
        for answer in await forwarding.asked(request):
            if answer.status_code != 200:
                raise NotReady("another worker does not list its users; ask again")
            found += orjson.loads(answer.content)["results"]
        found.sort(key=lambda one: str(one["name"]))
        start = (page - 1) * page_size
        return paged(found[start : start + page_size], len(found), "/v1/entities/", page, page_size)

    return api


def paged(results: list[Any], count: int, path: str, page: int, page_size: int) -> dict[str, Any]:
    """Return one page of a list in mem0's form.

    `next` and `previous` are the addresses of the next and the previous page, or None if there is no such page.
    """

    def at(number: int) -> str:
        return f"{path}?{urlencode({'page': number, 'page_size': page_size})}"

    return {
        "count": count,
        "next": at(page + 1) if page * page_size < count else None,
        "previous": at(page - 1) if page > 1 else None,
        "results": results,
    }


def past(memory: Memory, done: Sequence[Done]) -> list[dict[str, Any]]:
    """Return the history of a memory in mem0's form.

    It has one ADD, then one UPDATE for each edit or merge that recorded the old values. Each entry has the old and
    the new text. The texts are computed backwards, beginning with the memory's current text.
    """
    shown, text = list[dict[str, Any]](), memory.text

    def told(number: int, event: str, at: int, old: str | None, new: str) -> dict[str, Any]:
        return {
            "id": str(uuid.uuid5(memory.id, f"{number}/{event}/{at}")),
            "memory_id": str(memory.id),
            "user_id": memory.user_id,
            "event": event,
            "old_memory": old,
            "new_memory": new,
            "created_at": iso(memory.created_at),
            "updated_at": iso(at),
        }

    edits = [one for one in done if one.event in ("edited", "merged") and "before" in one.details]
    for number, one in reversed(list(enumerate(edits, start=1))):
        before = one.details["before"].get("text", text)
        shown.append(told(number, "UPDATE", one.occurred_at, before, text))
        text = before
    shown.append(told(0, "ADD", memory.created_at, None, text))
    return shown[::-1]


def _user(held: Holdings) -> dict[str, Any]:
    return {
        "id": held.user_id,
        "name": held.user_id,
        "type": "user",
        "total_memories": held.memories,
        "created_at": iso(held.oldest),
        "updated_at": iso(held.newest),
    }
