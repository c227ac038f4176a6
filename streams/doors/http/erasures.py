"""Erasure receipts, which list a user's forget commands, and count the user's data that this worker still holds."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from fastapi import APIRouter
from pydantic import BaseModel, Field

from schemas.errors import StoreUnavailable
from schemas.ids import Id
from schemas.stores import shown_store
from schemas.times import iso, now_ms
from streams.doors.http.consistency import Consistency
from streams.service import MemoryService
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.erasing import may_hold
from tables.checkpoints.store import Patience
from tables.memories.catalog.erasures import Erasure

#: Timeouts and retries for the checkpoint store. They are short, because a client waits for the receipt.
PATIENCE: Final = Patience(answer=4.0, retries=1, all=6.0)


class ForgetCommand(BaseModel):
    at: str
    whole_user: bool
    ids: int = Field(description="number of memories and near-copies whose ids are kept, so that none comes back")


class CheckpointsLeft(BaseModel):
    """The partition's checkpoints in object storage. Erased data leaves them within `checkpoints.erase_within`."""

    store: str = Field(description="`checkpoints.url`, but only the name of a folder")
    until: str = Field(
        description="end of the time in which they may hold erased data; moves on while the catalog may hold it"
    )
    may_hold: bool | None = Field(
        description="whether they may hold erased data now; null if the store does not answer"
    )
    generations: int | None = Field(description="number of the partition's checkpoints")


class Receipt(BaseModel):
    """The numbers of erased and remaining data of a user.

    After all data of the user was forgotten, all numbers in `left` are 0, unless new data has arrived since then.
    """

    user_id: str
    worker: str
    partition: int
    commands: list[ForgetCommand] = Field(description="oldest first; empty if nothing was ever forgotten")
    memories_erased: int
    left: dict[str, int] = Field(
        description="remaining rows by table, window exchanges, short-term memories, pending summaries and day files"
    )
    in_pages: bool = Field(description="whether the catalog's file may hold erased bytes until it is rewritten")
    checkpoints: CheckpointsLeft | None = Field(
        description="null if no checkpoints are made, or nothing was forgotten"
    )


def erasure_routes(service: MemoryService) -> APIRouter:
    """Return the route of `/v1/erasures`, for this worker's users."""
    api = APIRouter(tags=["memories"])

    @api.get("/v1/erasures", dependencies=Consistency(service).reads)
    async def receipt(user_id: Id) -> Receipt:
        """The user's forget commands with times, and counts of the data that this worker still holds."""
        found = await service.users.ask(user_id, lambda shard: shard.erasures.of(user_id))
        partition = service.users.partition_here(user_id)
        windows = service.windows
        sessions = windows.of_user(partition, user_id)
        days = await asyncio.to_thread(service.summaries.files.dates, user_id)
        left = {
            **found.left,
            "window_exchanges": sum(len(one.window) + bool(one.open) for one in sessions),
            "short_term_memories": len(windows.notes.of_user(partition, user_id)),
            "waiting_summaries": len(service.pending_summaries.of_user(partition, user_id)),
            "day_files": len(days),
        }
        commands = [ForgetCommand(at=iso(at), whole_user=whole, ids=ids) for at, whole, ids in found.commands]
        return Receipt(
            user_id=user_id,
            worker=service.health.url,
            partition=partition,
            commands=commands,
            memories_erased=found.memories,
            left=left,
            in_pages=found.in_pages,
            checkpoints=await _checkpoints(service, partition, found),
        )

    return api


async def _checkpoints(service: MemoryService, partition: int, found: Erasure) -> CheckpointsLeft | None:
    settings = service.settings.checkpoints
    if not settings.url or not found.commands:
        return None
    now = now_ms()
    gone_at = now if found.in_pages else max(at for at, _, _ in found.commands)
    until = iso(gone_at + settings.erase_within // timedelta(milliseconds=1))
    try:
        store = Checkpoints(settings.url, patience=PATIENCE)
        generations = await asyncio.to_thread(store.generations, partition)
    except StoreUnavailable as exc:
        return CheckpointsLeft(store=shown_store(exc.url), until=until, may_hold=None, generations=None)
    held = may_hold(generations, gone_at, now, settings.erase_within)
    return CheckpointsLeft(store=shown_store(store.url), until=until, may_hold=held, generations=len(generations))
