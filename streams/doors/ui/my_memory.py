"""The screen on which users see, correct, forget and export their own memories, and read their daily notes."""

from __future__ import annotations

import asyncio
import re
from datetime import date
from typing import Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import urlencode

import orjson
from fastapi import APIRouter, HTTPException, Path, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from schemas.events import ForgetUser
from schemas.ids import Id
from schemas.times import iso
from streams.doors.http.shown import ShownMemory, command
from streams.doors.http.summaries import Day
from streams.doors.ui.actions import SAID, done
from streams.doors.ui.door import HOME
from streams.doors.ui.pages import Pages
from streams.doors.ui.session import Form
from streams.doors.ui.viewer import Looking
from streams.service import MemoryService
from streams.shards.user_shards import WAIT_SECONDS

PAGE: Final = 40
#: The pattern of comments in a day's file. They name runs and source messages for programs, so the page omits them.
_COMMENT: Final = re.compile(r"<!--.*?-->")
#: Texts that tell users why a memory exists. The keys are reasons of promotions, and kinds of memories.
WHY: Final = {
    "forced": "you asked to remember it",
    "high_score": "it says something about you",
    "judged_important": "it was judged worth keeping",
    "unread": "it is in a language that is not rated here",
    "all": "everything is kept here",
    "remember": "you asked to remember it",
    "summary_item": "it was in a daily note",
    "summary": "it sums up several older ones",
}


class Line(NamedTuple):
    """A line of a daily note: its kind and its text."""

    kind: Literal["title", "head", "item", "rule", "text"]
    text: str


def lines_of(markdown: str) -> list[Line]:
    """Parse a day's Markdown file into titles, headings, items and rules. All other lines become text.

    The page shows these lines instead of HTML from the file, because the content of the file is not trusted.

    >>> lines_of("# Day\\n- tea\\n<!-- run -->")
    [Line(kind='title', text='Day'), Line(kind='item', text='tea')]
    """
    found = []
    for raw in _COMMENT.sub("", markdown).splitlines():
        line = "".join(char for char in raw if char.isprintable()).strip()
        if not line:
            continue
        plain = line.lstrip("#").strip().replace("**", "")
        if plain.startswith("*") and plain.endswith("*"):
            plain = plain.strip("*")
        if line.startswith("# "):
            found.append(Line("title", plain))
        elif line.startswith("#"):
            found.append(Line("head", plain))
        elif line.startswith(("- ", "* ")):
            found.append(Line("item", plain[2:]))
        elif set(line) <= {"-"} and len(line) > 2:
            found.append(Line("rule", ""))
        else:
            found.append(Line("text", plain))
    return found


def my_memory_routes(service: MemoryService, pages: Pages) -> APIRouter:
    """Return the routes of `/ui/me`, the only screen for viewers whose token is limited to some users."""
    api = APIRouter(include_in_schema=False)
    files, lifecycle = service.summaries.files, service.settings.lifecycle

    async def days_of(user_id: str) -> list[date]:
        service.users.partition_here(user_id)
        async with asyncio.timeout(WAIT_SECONDS):
            return await asyncio.to_thread(files.dates, user_id)

    async def shown(user_id: str) -> list[ShownMemory]:
        """Return the user's memories that no newer memory or summary replaces, newest first."""
        now = await service.moment()
        found = [memory for memory in await service.of_user(user_id) if memory.current]
        found.sort(key=lambda memory: -memory.created_at)
        return [ShownMemory.of(memory, now, lifecycle) for memory in found]

    @api.get("/ui/me")
    async def me(
        viewer: Looking,
        user_id: Annotated[str, Query(max_length=256)] = "",
        text: Annotated[str, Query(max_length=1_000)] = "",
        start: Annotated[int, Query(ge=0)] = 0,
        said: str = "",
    ) -> HTMLResponse:
        """The user's memories. Showing them does not count as an access."""
        if not user_id:
            return pages.page("whose.html", viewer, "/ui/me")
        who, _ = await service.profile(user_id, service.reference())
        wanted = text.casefold()
        memories = [one for one in await shown(user_id) if wanted in one.memory.casefold()]
        return pages.page(
            "me.html",
            viewer,
            "/ui/me",
            user_id=user_id,
            text=text,
            who=who,
            memories=memories[start : start + PAGE],
            total=len(memories),
            start=start,
            page=PAGE,
            days=(await days_of(user_id))[::-1],
            why=_why,
            said=SAID.get(said, ""),
        )

    @api.get("/ui/me/notes/{date}")
    async def notes(viewer: Looking, day: Annotated[Day, Path(alias="date")], user_id: Id) -> HTMLResponse:
        """A day's notes."""
        service.users.partition_here(user_id)
        async with asyncio.timeout(WAIT_SECONDS):
            markdown = await asyncio.to_thread(files.read, user_id, day)
        if markdown is None:
            raise HTTPException(404, f"there is no note of {day}")
        return pages.page(
            "notes.html", viewer, "/ui/me", user_id=user_id, day=day.isoformat(), lines=lines_of(markdown)
        )

    @api.get("/ui/me/export")
    async def export(user_id: Id) -> Response:
        """The user's memories, archive, recent messages and daily notes as one JSON file."""
        days = await days_of(user_id)
        async with asyncio.timeout(WAIT_SECONDS):
            written = await asyncio.to_thread(lambda: {str(day): files.read(user_id, day) for day in days})
        now = await service.moment()
        everything: dict[str, Any] = {
            "user_id": user_id,
            "exported_at": iso(now) if now else None,
            "memories": [
                ShownMemory.of(one, now, lifecycle).model_dump(mode="json") for one in await service.of_user(user_id)
            ],
            "archive": [
                {**ShownMemory.of(one.memory, now, lifecycle).model_dump(mode="json"), "archived_at": iso(one.at)}
                for one in await service.users.ask(user_id, lambda shard: shard.archive.listed(user_id))
            ],
            "said_lately": [
                {"session_id": session, "role": said.role, "content": said.content, "timestamp": iso(said.timestamp)}
                for session, said in service.windows.said_by(service.users.partition_here(user_id), user_id)
            ],
            "daily_notes": written,
        }
        return Response(
            orjson.dumps(everything, option=orjson.OPT_INDENT_2),
            media_type="application/json",
            headers={"content-disposition": 'attachment; filename="my-memory.json"'},
        )

    @api.post("/ui/me/forget")
    async def forget(user_id: Id, fields: Form) -> Response:
        """Forget all data of the user up to now. The form must repeat the user id."""
        if fields.get("sure", "").strip() != user_id:
            raise HTTPException(422, "to forget everything, write your user id into the field")
        said = await done(service, command(ForgetUser, user_id), "all-forgotten")
        return RedirectResponse(f"{HOME}/me?{urlencode({'user_id': user_id, 'said': said})}", 303)

    return api


def _why(memory: ShownMemory) -> str:
    """Return the text in `WHY` that tells the user why a memory exists, or an empty text if there is none."""
    promoted = memory.metadata.get("promotion")
    reason = promoted.get("reason") if isinstance(promoted, dict) else memory.kind
    return WHY.get(str(reason), "")
