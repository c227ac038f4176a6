"""Actions of the dashboard on one memory: pin, correct, replace, archive, restore, forget.

Each action is written to the log as an event. The next page is sent when the effect of the event can be read, or
after `WAIT_SECONDS`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from schemas.events import Archive, Edit, Forget, LongTermEvent, Pin, Remember, Restore, Supersede, Unpin
from schemas.ids import Id
from schemas.memories import STILL_HOLDS
from schemas.places import Place
from schemas.record_values import invalid
from schemas.times import now_ms
from streams.doors.http.shown import command
from streams.doors.ui.session import Form
from streams.service import MemoryService

#: The maximum number of seconds that a page waits for the effect of an action. Most actions are faster. If an action
#: is slower, the page is sent without its effect.
WAIT_SECONDS: Final = 8.0
LATE: Final = "late"
#: The messages that a page shows after an action. The page's parameter `said` has the key of the message.
SAID: Final = {
    "pinned": "The memory is pinned and does not decay.",
    "unpinned": "The memory is not pinned any more and decays again.",
    "edited": "The memory is corrected. Its history keeps the old text.",
    "superseded": "The memory is replaced by a newer one.",
    "holds": "The memory holds again, whatever a newer one states.",
    "archived": "The memory is archived. Only a search of the archive finds it.",
    "restored": "The memory is restored, as if it were accessed now.",
    "forgotten": "The memory is forgotten. A replay does not bring it back.",
    "all-forgotten": "Everything is forgotten: memories, archive, windows and daily notes.",
    LATE: "The change is written and takes effect in a moment. Load the page again.",
}


async def done(service: MemoryService, event: LongTermEvent, said: str) -> str:
    """Write the event and wait until its effect can be read.

    Return the key of the message to show: `said`, or `LATE` if the wait was too short.
    """

    async def write() -> Sequence[Place]:
        return [await service.writes.write(event)]

    _, applied = await service.writes.applied(event.user_id, WAIT_SECONDS, write)
    return said if applied else LATE


def action_routes(service: MemoryService) -> APIRouter:
    """The routes `POST /ui/memories/{memory_id}/…`. The guard has already checked the parameter `user_id`."""
    api = APIRouter(include_in_schema=False)

    def back(fields: Form, user_id: str, memory_id: uuid.UUID | None, said: str) -> Response:
        """Redirect to the page from which the form was sent.

        `memory_id` is None for a forgotten memory, which has no page.
        """
        path = "/ui/me" if fields.get("back") == "me" else "/ui/memories"
        if memory_id is not None and path == "/ui/memories":
            path = f"{path}/{memory_id}"
        return RedirectResponse(f"{path}?{urlencode({'user_id': user_id, 'said': said})}", 303)

    @api.post("/ui/memories/{memory_id}/pin")
    async def pin(memory_id: uuid.UUID, user_id: Id, fields: Form) -> Response:
        found = await service.one(user_id, memory_id)
        said = await done(service, command(Pin, user_id, memory_id=found.id), "pinned")
        return back(fields, user_id, found.id, said)

    @api.post("/ui/memories/{memory_id}/unpin")
    async def unpin(memory_id: uuid.UUID, user_id: Id, fields: Form) -> Response:
        found = await service.one(user_id, memory_id)
        said = await done(service, command(Unpin, user_id, memory_id=found.id), "unpinned")
        return back(fields, user_id, found.id, said)

    @api.post("/ui/memories/{memory_id}/edit")
    async def edit(memory_id: uuid.UUID, user_id: Id, fields: Form) -> Response:
        found = await service.one(user_id, memory_id)
        with _as_422():
            event = command(Edit, user_id, memory_id=found.id, text=fields.get("text", ""))
        return back(fields, user_id, found.id, await done(service, event, "edited"))

    @api.post("/ui/memories/{memory_id}/supersede")
    async def supersede(memory_id: uuid.UUID, user_id: Id, fields: Form) -> Response:
        """Replace the memory by an existing memory (field `by`), or by a new memory with the text in the form."""
        older, by = await service.one(user_id, memory_id), fields.get("by", "").strip()
        with _as_422():
            event: LongTermEvent
            if by:
                newer = await service.one(user_id, _id(by))
                if newer.id == older.id:
                    raise HTTPException(422, "a memory cannot replace itself")
                event = command(Supersede, user_id, memory_id=older.id, by=newer.id)
            else:
                text, of = fields.get("text", ""), older.session_id
                remember = command(Remember, user_id, text=text, session_id=of, supersedes=[older.id])
                event = service.importance.weighed(remember)
        return back(fields, user_id, older.id, await done(service, event, "superseded"))

    @api.post("/ui/memories/{memory_id}/hold")
    async def hold(memory_id: uuid.UUID, user_id: Id, fields: Form) -> Response:
        """Undo that the memory was superseded, or that its time of validity ended."""
        found = await service.one(user_id, memory_id)
        event = command(Edit, user_id, memory_id=found.id, metadata={STILL_HOLDS: True})
        return back(fields, user_id, found.id, await done(service, event, "holds"))

    @api.post("/ui/memories/{memory_id}/archive")
    async def archive(memory_id: uuid.UUID, user_id: Id, fields: Form) -> Response:
        found = await service.one(user_id, memory_id)
        event = command(Archive, user_id, timestamp=await service.moment() or now_ms(), memory_id=found.id)
        return back(fields, user_id, found.id, await done(service, event, "archived"))

    @api.post("/ui/memories/{memory_id}/restore")
    async def restore(memory_id: uuid.UUID, user_id: Id, fields: Form) -> Response:
        found = await service.archived(user_id, memory_id)
        event = command(Restore, user_id, timestamp=await service.moment() or now_ms(), memory_id=found)
        return back(fields, user_id, found, await done(service, event, "restored"))

    @api.post("/ui/memories/{memory_id}/forget")
    async def forget(memory_id: uuid.UUID, user_id: Id, fields: Form) -> Response:
        said = await done(service, command(Forget, user_id, memory_id=memory_id), "forgotten")
        return back(fields, user_id, None, said)

    return api


class _as_422:  # noqa: N801  (reads as the statement that it is)
    """Turn a validation error of an event into an HTTP error 422, because the values of the form caused it."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _: object, exc: BaseException | None, *__: object) -> None:
        if isinstance(exc, ValidationError):
            raise HTTPException(422, str(invalid(exc))) from exc


def _id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise HTTPException(422, "by: is not the id of a memory") from None
