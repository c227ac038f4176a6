"""The methods of mem0's API that write. Each of them waits until its effect can be read.

They are `add`, `update`, `delete`, `delete_all` and `delete_users`.
"""

from __future__ import annotations

import ast
import uuid
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Query
from pydantic import Field, model_validator

from schemas.events import Edit, Forget, ForgetUser, LongTermEvent
from schemas.fields import MAX_METADATA_BYTES, Content, Metadata
from schemas.ids import Id
from schemas.memories import Memory
from schemas.places import Place
from streams.doors.http.shown import command
from streams.doors.mem0.adding import Added, Adding
from streams.doors.mem0.entries import Entries, Entry
from streams.doors.mem0.filters import APP, asked
from streams.doors.mem0.owners import Owners
from streams.doors.mem0.wire import WAIT_SECONDS, Body, WireRoute, Writer, refused
from streams.recall.filtering import Condition, matching
from streams.runtime.cancellation import cancellable
from streams.service import MemoryService
from tables.memories.editing import OURS, outgrows
from tables.memories.shard import Shard

Named = Annotated[Id | None, Query()]
#: The maximum length of the parameter `filters`, in characters. The filters that mem0's client sends are always
#: shorter.
MOST_FILTERS: Final = 4096


class Update(Body):
    """New values of a memory."""

    text: Annotated[Content, Field(min_length=1)] | None = None
    metadata: Metadata | None = Field(default=None, description="replaces the existing metadata")

    @model_validator(mode="after")
    def _changes_something(self) -> Update:
        if self.text is None and self.metadata is None:
            raise ValueError("give text or metadata: a memory's time cannot change, and no memory expires")
        if APP in (self.metadata or {}):
            raise ValueError(f"metadata: {APP} names the owner, and cannot be changed")
        return self


def changing_routes(service: MemoryService, owners: Owners) -> APIRouter:
    """Return the routes that write, for this worker's users."""
    api = APIRouter(tags=["mem0"], route_class=WireRoute)
    entries, adding = Entries(service), Adding(service)

    async def write_all(user_id: str, events: Sequence[LongTermEvent]) -> bool:
        async def write() -> Sequence[Place]:
            return await service.writes.write_all(events)

        return bool((await service.writes.applied(user_id, WAIT_SECONDS, write))[1]) if events else True

    @api.post("/v3/memories/add/")
    async def add(given: Added, caller: Writer) -> dict[str, Any]:
        """Add messages to a session, or with `infer: false` remember them verbatim.

        `results` has the memories, and the exchanges that are not memories yet, that can be found now. If an exchange
        becomes a memory, it keeps its id. `not_taken` has the reason for each message that was refused.
        """
        user_id = caller.user(given.user_id)
        done = await adding.add(given, user_id, WAIT_SECONDS, caller.sources)
        found = [one for one in await entries.of_user(user_id) if done.ids & {str(one[0].id), *one[0].message_ids}]
        shown = await entries.shown(user_id, reversed(found))
        owners.showed(user_id, shown)
        where = "added, and can be found" if done.applied else "added to the log, and can be found in a moment"
        return {
            "message": where,
            "status": "SUCCEEDED" if done.applied else "PENDING",
            "event_id": min(done.ids),
            "results": [{"id": one["id"], "memory": one["memory"], "event": "ADD"} for one in shown],
            "not_taken": done.not_taken,
        }

    @api.put("/v1/memories/{memory_id}/")
    async def update(memory_id: uuid.UUID, change: Update, caller: Writer) -> Entry:
        """Edit a memory. A new text is embedded, and the memory's history keeps the old text."""
        user_id = await owners.user_of(caller, memory_id)
        memory = await entries.memory(user_id, memory_id)
        metadata = None if change.metadata is None else _in_place(memory, change.metadata)
        if metadata is not None and outgrows(memory.meta, metadata):
            raise refused(f"metadata: more than {MAX_METADATA_BYTES} bytes of JSON")
        sources = [] if change.text is None else caller.sources
        event = command(Edit, user_id, memory_id=memory.id, text=change.text, metadata=metadata, sources=sources)
        await write_all(user_id, [event])
        (shown,) = await entries.shown(user_id, [await entries.one(user_id, memory.id)])
        return shown

    @api.delete("/v1/memories/{memory_id}/")
    async def delete(memory_id: uuid.UUID, caller: Writer, delete_linked: bool = False) -> dict[str, str]:
        """Forget a memory.

        With `delete_linked`, also forget all memories that it superseded, directly or indirectly.
        """
        user_id = await owners.user_of(caller, memory_id)
        memory, _ = await entries.one(user_id, memory_id)
        ids = {memory.id} | (_behind(memory.id, await service.of_user(user_id)) if delete_linked else set())
        await write_all(user_id, [command(Forget, user_id, memory_id=one) for one in sorted(ids)])
        return {"message": "Memory deleted successfully!"}

    @api.delete("/v1/memories/")
    async def delete_all(
        caller: Writer,
        user_id: Named = None,
        agent_id: Named = None,
        app_id: Named = None,
        run_id: Named = None,
        filters: Annotated[str | None, Query(max_length=MOST_FILTERS)] = None,
    ) -> dict[str, str]:
        """Forget all data of a user.

        With an agent, an app, a run or other filters, forget only the user's memories and exchanges that match,
        including archived memories.
        """
        wanted = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
        conditions = {name: value for name, value in wanted.items() if value is not None}
        try:
            named, held = asked({"AND": [_object(filters), conditions]})
        except ValueError as exc:
            raise refused(str(exc)) from exc
        if named is None:
            raise refused("user_id: name the user whose memories to delete: without a user, none are deleted")
        user = caller.user(named)
        if not held:
            await write_all(user, [command(ForgetUser, user)])
            return {"message": "Memories deleted successfully!"}
        found = [one for one, _ in await entries.of_user(user, held, replaced=True)]
        found += await service.users.ask(user, _archived, user, held)
        await write_all(user, [command(Forget, user, memory_id=one.id) for one in found])
        return {"message": "Memories deleted successfully!"}

    @api.delete("/v2/entities/{kind}/{name:path}/")
    async def delete_user(kind: str, name: Id, caller: Writer) -> dict[str, str]:
        """Forget all data of a user. Users are the only kind of entity here."""
        if kind != "user":
            raise refused(f"{kind}: only users are entities here: use delete_all(user_id=…, {kind}_id=…)")
        user = caller.user(name)
        await write_all(user, [command(ForgetUser, user)])
        return {"message": "Entity deleted successfully!"}

    return api


def _in_place(memory: Memory, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a metadata patch that sets `metadata` and removes all other keys, except those that Siltstone uses."""
    kept = {*OURS, APP}
    return {**{key: None for key in memory.meta if key not in kept}, **metadata}


def _archived(shard: Shard, user_id: str, conditions: Sequence[Condition]) -> list[Memory]:
    """Return the archived memories that match all conditions. This runs on the shard's thread."""
    return matching((one.memory for one in cancellable(shard.archive.listed(user_id))), conditions)


def _behind(memory_id: uuid.UUID, memories: Iterable[Memory]) -> set[uuid.UUID]:
    """Return the ids of all memories that this memory superseded, directly or indirectly."""
    older = dict[uuid.UUID, set[uuid.UUID]]()
    for memory in memories:
        if memory.superseded_by is not None:
            older.setdefault(memory.superseded_by, set()).add(memory.id)
    found, new = set[uuid.UUID](), {memory_id}
    while new:
        new = set().union(*(older.get(one, set()) for one in new)) - found
        found |= new
    return found - {memory_id}


def _object(filters: str | None) -> dict[str, Any]:
    """Parse the query parameter `filters`, which mem0's client writes as a Python literal.

    Raises an `HTTPException` (400) if it is not an object.
    """
    if filters is None:
        return {}
    try:
        found = orjson.loads(orjson.dumps(ast.literal_eval(filters)))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as exc:
        raise refused("filters: not an object: pass user_id=… on its own") from exc
    if not isinstance(found, dict):
        raise refused("filters: not an object: pass user_id=… on its own")
    return found
