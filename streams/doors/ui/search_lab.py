"""The screen that analyses a query: rankings by words, by meaning and by both, and the resulting prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from schemas.lifecycle import wanted_states
from schemas.memories import SearchHit
from streams.doors.ui.pages import Pages
from streams.doors.ui.people import People, newest_users, people_of
from streams.doors.ui.viewer import Looking
from streams.doors.ui.workers import Workers
from streams.recall.context import ContextQuery
from streams.recall.query import Query as Question
from streams.service import MemoryService

#: The maximum number of hits of the search, and the maximum number of hits in each column of the screen.
CONSIDERED, SHOWN = 40, 10
Among = Literal["active", "cold", "all"]
AMONGS: Final = (("active", "active"), ("cold", "active and cold"), ("all", "all states"))
_Word = Annotated[str, Query(max_length=2_000)]


def search_routes(service: MemoryService, workers: Workers, pages: Pages) -> APIRouter:
    """`/ui/search`."""
    api = APIRouter(include_in_schema=False)

    async def own_people() -> People:
        async with service.users.own_shards():
            return await people_of(service)

    async def answered(user_id: str, session_id: str, text: str, among: Among) -> dict[str, Any]:
        """Return the user's memories in three rankings (words, meaning, both), and the prompt for an assistant."""
        states = wanted_states(include_all=among == "all", include_cold=among == "cold")
        query = Question(user_id, text, CONSIDERED, states, explain=True, replaced=among == "all", touch=False)
        found = await service.search(query)
        context = await service.context(ContextQuery(user_id, session_id, text, touch=False))
        return {
            "hits": list(found),
            "fused": list(found)[:SHOWN],
            "by_words": _best(found, lambda why: (why["bm25_rank"], -why["bm25"])),
            "by_meaning": _best(found, lambda why: (why["cosine_rank"], -why["cosine"])),
            "elsewhere": found.elsewhere,
            "prompt": context.prompt,
        }

    @api.get("/ui/search")
    async def search(
        request: Request,
        viewer: Looking,
        user_id: _Word = "",
        session_id: _Word = "",
        q: _Word = "",
        among: Among = "active",
    ) -> HTMLResponse:
        """The form, and its results below."""
        values: dict[str, Any] = {"people": ()}
        asked = bool(user_id and q.strip())
        if asked:
            values |= await answered(user_id, session_id, q, among)
        elif not user_id:
            values["people"] = newest_users(await workers.tell(request, "/ui/worker/people", own_people))[:8]
        return pages.page(
            "search.html",
            viewer,
            "/ui/search",
            user_id=user_id,
            session_id=session_id,
            q=q,
            among=among,
            amongs=AMONGS,
            asked=asked,
            shown=SHOWN,
            considered=CONSIDERED,
            **values,
        )

    return api


def _best(hits: Sequence[SearchHit], by: Callable[[dict[str, Any]], tuple[float, float]]) -> list[SearchHit]:
    return sorted(hits, key=lambda hit: by(hit.explain or {}))[:SHOWN]
