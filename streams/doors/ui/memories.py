"""The screens of memories: a list of users, and a list of one user's memories, filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from schemas.lifecycle import score_of, state_of
from schemas.memories import Memory, State
from schemas.settings import LifecycleSettings
from streams.doors.http.listing import conditions_of
from streams.doors.http.shown import ShownMemory
from streams.doors.ui.pages import Pages
from streams.doors.ui.people import People, newest_users, people_of
from streams.doors.ui.viewer import Looking
from streams.doors.ui.workers import Workers
from streams.recall.filtering import Filter
from streams.runtime.cancellation import cancellable
from streams.service import MemoryService
from tables.memories.shard import Shard

PAGE: Final = 50
States = Literal["all", "active", "cold", "deprecated", "archived"]
Order = Literal["newest", "oldest", "score", "importance", "accessed"]

_ORDERS: Final[dict[Order, Callable[[Memory, float], Any]]] = {
    "newest": lambda memory, _: -memory.created_at,
    "oldest": lambda memory, _: memory.created_at,
    "score": lambda _, score: -score,
    "importance": lambda memory, _: -memory.importance,
    "accessed": lambda memory, _: -memory.last_accessed,
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The filter and the order of a user's list of memories. An empty field matches all memories.

    `start` is the number of memories before the shown page.
    """

    user_id: str
    state: States
    text: str
    conditions: Sequence[Filter]
    order: Order
    start: int


@dataclass(frozen=True, slots=True)
class Found:
    memories: list[Memory]
    total: int


def _found(shard: Shard, chosen: Chosen, now: int, lifecycle: LifecycleSettings) -> Found:
    """Return one page of the user's memories that match the filter.

    This runs on the shard's thread instead of the event loop, because a user may have thousands of memories.
    """
    archive = chosen.state == "archived"
    held: Sequence[Memory] = (
        [one.memory for one in shard.archive.listed(chosen.user_id)] if archive else shard.memories_of(chosen.user_id)
    )
    scored = [(memory, score_of(memory, now, lifecycle)) for memory in held]
    if chosen.state not in ("all", "archived"):
        scored = [one for one in scored if state_of(one[1], lifecycle) is State(chosen.state)]
    wanted = chosen.text.casefold()
    scored = [
        (memory, score)
        for memory, score in cancellable(scored)
        if wanted in memory.text.casefold() and all(condition.matches(memory) for condition in chosen.conditions)
    ]
    scored.sort(key=lambda one: (_ORDERS[chosen.order](*one), one[0].seq))
    return Found([memory for memory, _ in scored[chosen.start : chosen.start + PAGE]], len(scored))


def memories_routes(service: MemoryService, workers: Workers, pages: Pages) -> APIRouter:
    """`/ui/memories`."""
    api = APIRouter(include_in_schema=False)
    lifecycle = service.settings.lifecycle

    async def own_people() -> People:
        async with service.users.own_shards():
            return await people_of(service)

    @api.get("/ui/memories")
    async def memories(
        request: Request,
        viewer: Looking,
        user_id: Annotated[str, Query(max_length=256)] = "",
        state: States = "all",
        text: Annotated[str, Query(max_length=1_000)] = "",
        filter: Annotated[str, Query(max_length=1_000)] = "",  # noqa: A002 - the parameter's name
        order: Order = "newest",
        start: Annotated[int, Query(ge=0)] = 0,
    ) -> HTMLResponse:
        """A user's memories, or the list of users. Showing them does not count as an access."""
        if not user_id:
            told = await workers.tell(request, "/ui/worker/people", own_people)
            return pages.page("users.html", viewer, "/ui/memories", users=newest_users(told), silent=told.silent)
        chosen = Chosen(user_id, state, text, conditions_of(filter.split() if filter else []), order, start)
        now = await service.moment()
        found = await service.users.ask(user_id, _found, chosen, now, lifecycle)
        every = chosen == Chosen(user_id, "all", "", (), order, 0)
        who = (await service.profile(user_id, service.reference()))[0] if every else None
        return pages.page(
            "memories.html",
            viewer,
            "/ui/memories",
            chosen=chosen,
            who=who,
            filter=filter,
            total=found.total,
            memories=[ShownMemory.of(memory, now, lifecycle) for memory in found.memories],
            last=min(start + PAGE, found.total),
            states=("all", "active", "cold", "deprecated", "archived"),
            orders=tuple(_ORDERS),
        )

    return api
