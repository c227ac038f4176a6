"""Receipts: what was forgotten of a user, and what this worker still holds."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from pydantic import BaseModel, Field

from schemas.messages import Id, iso
from streams.service import MemoryService
from tables.shard.shard import Shard


class ForgetCommand(BaseModel):
    at: str
    whole_user: bool
    ids: int = Field(description="of how many memories and near-copies the names are kept, so that none comes back")


class Receipt(BaseModel):
    """Counts by place. After a `forget_user` all of `left` is 0, but for what was said since."""

    user_id: str
    worker: str
    partition: int
    commands: list[ForgetCommand] = Field(description="oldest first; empty where nothing was ever forgotten")
    memories_erased: int
    left: dict[str, int] = Field(description="rows by table, window and notes, and day files")
    in_pages: bool = Field(description="whether bytes of the catalog may hold it until the file is written anew")


def erasure_routes(service: MemoryService) -> APIRouter:
    """`/v1/erasures`, of this worker's users."""
    api = APIRouter(tags=["memories"])

    @api.get("/v1/erasures")
    async def receipt(user_id: Id) -> Receipt:
        """What was forgotten of the user, when, and what this worker still holds of them, by table and file."""
        found = await service.ask(user_id, Shard.erasure, user_id)
        partition = service.partition_here(user_id)
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
        )

    return api
