"""The ten MCP tools. Their parameters are not nested. They return the API's answer both as typed data and as text.

If the caller's token is of one user, the tools use that user. The server then removes `user_id` from their schemas.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Final

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

from schemas.ids import Id
from streams.doors.http.memories import HistoryResponse, MemoriesResponse, OneMemory
from streams.doors.http.profile import ProfileResponse
from streams.doors.http.searching import SearchResponse
from streams.doors.http.sessions import ContextResponse
from streams.doors.http.summaries import DayResponse
from streams.doors.mcp import rendering
from streams.doors.mcp.answers import Forgotten, Written
from streams.doors.mcp.own_api import OwnApi, Refused
from streams.recall.context import LEAST_TOKENS, MOST_TOKENS

#: The maximum number of seconds that a tool waits until its write can be read. After that time, the tool reports only
#: that the write is accepted.
APPLIED_SECONDS: Final = 10
_WAIT: Final = {"wait": "applied", "timeout": APPLIED_SECONDS}

User = Annotated[Id | None, Field(description="id of the user whose memories the call is about")]
MemoryId = Annotated[uuid.UUID, Field(description="the memory's id, from a search or a list")]
Cold = Annotated[bool, Field(description="include cold memories, which were not used for a while")]
ReferenceDate = Annotated[
    str | None, Field(description="the day of the question, such as 2026-03-14; if omitted, today")
]
AsOf = Annotated[
    str | None, Field(description="a day such as 2026-03-14: only what held then, also if it was replaced later")
]
AllStates = Annotated[bool, Field(description="include cold, deprecated and replaced memories")]


def _answer(text: str, content: BaseModel | dict[str, Any]) -> CallToolResult:
    structured = content.model_dump(mode="json") if isinstance(content, BaseModel) else content
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structured)


class Tools:
    """The tools, which call the worker's own API. A method's docstring describes the tool to the assistant."""

    def __init__(self, api: OwnApi) -> None:
        self._ask = api.ask

    def all(self) -> list[Tool]:
        read = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        adds = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
        replaces = ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
        )
        return [
            _tool(self.remember, "Remember", adds),
            _tool(self.search_memory, "Search the memory", read),
            _tool(self.get_context, "Get the context of a session", read),
            _tool(self.get_profile, "Who the user is", read),
            _tool(self.list_memories, "List memories", read),
            _tool(self.get_memory, "Get a memory", read),
            _tool(self.update_memory, "Update a memory", replaces),
            _tool(self.forget_memory, "Forget a memory", replaces),
            _tool(self.memory_history, "History of a memory", read),
            _tool(self.daily_summary, "Daily summary", read),
        ]

    async def remember(
        self,
        text: Annotated[
            str, Field(min_length=1, description="what to remember, as a sentence that makes sense on its own")
        ],
        importance: Annotated[
            float | None, Field(ge=0, le=100, description="0 to 100; if omitted, computed from the text")
        ] = None,
        session_id: Annotated[Id | None, Field(description="id of the conversation that the text comes from")] = None,
        user_id: User = None,
    ) -> Annotated[CallToolResult, Written]:
        """Remember a fact, a preference or an appointment permanently. Returns when searches can find it."""
        given = {"text": text, "importance": importance, "session_id": session_id, "user_id": user_id}
        accepted = await self._ask("POST", "/v1/memories", params=_WAIT, json=given)
        done = Written.of(accepted["event_id"], accepted)
        return _answer(rendering.written(f"Remembered as memory {done.memory_id}", done.applied), done)

    async def search_memory(
        self,
        query: Annotated[str, Field(min_length=1, description="a question, or words to search for")],
        top_k: Annotated[int | None, Field(ge=1, le=1000, description="maximum number of results")] = None,
        include_cold: Cold = False,
        include_all: AllStates = False,
        reference_date: ReferenceDate = None,
        as_of: AsOf = None,
        user_id: User = None,
    ) -> Annotated[CallToolResult, SearchResponse]:
        """Find memories that answer a question, and recent exchanges (state short_term)."""
        asked = {
            "query": query,
            "top_k": top_k,
            "include_cold": include_cold,
            "include_all": include_all,
            "reference_date": reference_date,
            "as_of": as_of,
            "user_id": user_id,
        }
        answer = await self._ask("POST", "/v1/search", json=asked)
        return _answer(rendering.hits(answer), answer)

    async def get_context(
        self,
        session_id: Annotated[Id, Field(description="id of the current conversation")],
        query: Annotated[str, Field(description="what to search for; if omitted, the user's last message")] = "",
        max_tokens: Annotated[
            int | None,
            Field(
                ge=LEAST_TOKENS,
                le=MOST_TOKENS,
                description="maximum length of the context; if omitted, 3 memories and no maximum",
            ),
        ] = None,
        reference_date: ReferenceDate = None,
        as_of: AsOf = None,
        profile: Annotated[bool, Field(description="begin with who the user is, as get_profile tells")] = False,
        user_id: User = None,
    ) -> Annotated[CallToolResult, ContextResponse]:
        """Get the context for an answer: the newest exchanges of a session, its notes, the most relevant memories."""
        asked = {
            "session_id": session_id,
            "q": query,
            "max_tokens": max_tokens,
            "reference_date": reference_date,
            "as_of": as_of,
            "profile": profile,
            "user_id": user_id,
        }
        answer = await self._ask("GET", "/v1/context", params=asked)
        return _answer(rendering.context(answer), answer)

    async def get_profile(
        self, reference_date: ReferenceDate = None, user_id: User = None
    ) -> Annotated[CallToolResult, ProfileResponse]:
        """Who the user is: pinned memories, home, job, people, likes, and appointments to come."""
        asked = {"reference_date": reference_date, "user_id": user_id}
        answer = await self._ask("GET", "/v1/profile", params=asked)
        return _answer(rendering.profile(answer), answer)

    async def list_memories(
        self,
        limit: Annotated[int, Field(ge=1, le=1000, description="maximum number of memories")] = 50,
        after: Annotated[uuid.UUID | None, Field(description="for the next page: `next` of the page before")] = None,
        include_cold: Cold = False,
        include_all: AllStates = False,
        as_of: AsOf = None,
        user_id: User = None,
    ) -> Annotated[CallToolResult, MemoriesResponse]:
        """List memories, oldest first, page by page: the active ones, unless others are requested."""
        asked = {
            "limit": limit,
            "after": None if after is None else str(after),
            "include_cold": include_cold,
            "include_all": include_all,
            "as_of": as_of,
            "user_id": user_id,
        }
        answer = await self._ask("GET", "/v1/memories", params=asked)
        return _answer(rendering.page(answer), answer)

    async def get_memory(self, memory_id: MemoryId, user_id: User = None) -> Annotated[CallToolResult, OneMemory]:
        """Get one memory with all its fields."""
        answer = await self._ask("GET", f"/v1/memories/{memory_id}", params={"user_id": user_id})
        return _answer(rendering.memory(answer), answer)

    async def update_memory(
        self,
        memory_id: MemoryId,
        text: Annotated[str, Field(min_length=1, description="the memory's new text")],
        user_id: User = None,
    ) -> Annotated[CallToolResult, Written]:
        """Correct the text of a memory. Its history keeps the old text."""
        path, asked = f"/v1/memories/{memory_id}", {"text": text, "user_id": user_id}
        done = Written.of(memory_id, await self._ask("PATCH", path, params=_WAIT, json=asked))
        return _answer(rendering.written(f"Memory {memory_id} is updated", done.applied), done)

    async def forget_memory(self, memory_id: MemoryId, user_id: User = None) -> Annotated[CallToolResult, Forgotten]:
        """Forget a memory permanently, if the user asks for it. This cannot be undone."""
        path, user = f"/v1/memories/{memory_id}", {"user_id": user_id}
        known = await self._is_memory(path, user)
        done = Forgotten.of(memory_id, await self._ask("DELETE", path, params={**_WAIT, **user}), was_memory=known)
        what = (
            f"Memory {memory_id} is forgotten"
            if known
            else f"No memory has the id {memory_id}; a note or exchange with this id, if there is one, is forgotten"
        )
        return _answer(rendering.written(what, done.applied), done)

    async def memory_history(
        self, memory_id: MemoryId, user_id: User = None
    ) -> Annotated[CallToolResult, HistoryResponse]:
        """The history of a memory since its creation: edits with the old text, changes of state."""
        answer = await self._ask("GET", f"/v1/memories/{memory_id}/history", params={"user_id": user_id})
        return _answer(rendering.history(answer), answer)

    async def daily_summary(
        self,
        date: Annotated[
            datetime.date | None, Field(description="YYYY-MM-DD; if omitted, the newest day with a summary")
        ] = None,
        user_id: User = None,
    ) -> Annotated[CallToolResult, DayResponse]:
        """The summary of a day: topics, preferences, decisions, to-dos, problems and insights, in Markdown.

        If the day is over, it is one summary of the whole day; else the summaries that were written so far.
        """
        user = {"user_id": user_id}
        day = date.isoformat() if date else await self._newest_day(user)
        answer = await self._ask("GET", f"/v1/summaries/{day}", params=user)
        return _answer(rendering.summary(answer), answer)

    async def _is_memory(self, path: str, user: dict[str, str | None]) -> bool:
        """Return whether the user has this memory, archived or not.

        This method requests the memory's history, because a request for the memory itself would count as an access.
        """
        try:
            await self._ask("GET", f"{path}/history", params=user)
        except Refused as exc:
            if exc.status != 404:
                raise
            return False
        return True

    async def _newest_day(self, user: dict[str, str | None]) -> str:
        days = (await self._ask("GET", "/v1/summaries", params=user))["days"]
        if not days:
            raise ToolError("there is no daily summary yet: one is made when a day is over, or on request")
        return str(days[-1]["date"])


def _tool(method: Callable[..., Any], title: str, hints: ToolAnnotations) -> Tool:
    return Tool.from_function(method, title=title, annotations=hints)
