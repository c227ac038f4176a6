"""Routes that request a checkpoint of a partition and show its progress. The partition's owner answers them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path
from pydantic import BaseModel, Field

from schemas.errors import CheckpointError
from schemas.stores import shown_store
from streams.doors.http.refusals import because
from streams.service import MemoryService
from streams.shards.restore.asked_checkpoints import AskedCheckpoints

Partition = Annotated[int, Path(ge=0)]


class CheckpointsResponse(BaseModel):
    store: str = Field(
        description="`checkpoints.url`, but only the name of a folder; empty if no checkpoints are made"
    )
    partitions: int = Field(description="number of all partitions")
    here: list[int] = Field(description="partitions of this worker")


class CheckpointResponse(BaseModel):
    partition: int
    worker: str
    running: bool
    unchanged: bool = Field(description="whether the newest checkpoint was already up to date")
    generation: int | None
    uploaded: int | None = Field(description="bytes uploaded to the store for this checkpoint")
    bytes: int | None = Field(description="size of all its files")
    error: str = Field(description="why the checkpoint failed; empty if it did not")


def checkpoint_routes(service: MemoryService) -> APIRouter:
    """`/v1/checkpoints`."""
    api = APIRouter(tags=["operations"])
    settings, asked = service.settings, service.checkpoints

    @api.get("/v1/checkpoints")
    async def checkpoints() -> CheckpointsResponse:
        """The store, and the partitions of which this worker makes checkpoints."""
        return CheckpointsResponse(
            store=shown_store(settings.checkpoints.url),
            partitions=settings.kafka.partitions,
            here=sorted(service.shards.partitions()),
        )

    @api.post(
        "/v1/checkpoints/{partition}",
        status_code=202,
        responses={**because(404, "No such partition"), **because(409, "No checkpoints are made")},
    )
    async def begin(partition: Partition) -> CheckpointResponse:
        """Begin a checkpoint now. `GET` of the same address shows whether it is complete."""
        _require(partition)
        try:
            asked.begin(partition)
            return _shown(asked, partition)
        except CheckpointError as exc:
            raise HTTPException(409, str(exc)) from exc

    @api.get(
        "/v1/checkpoints/{partition}",
        responses=because(404, "No such partition, or no checkpoint was requested"),
    )
    async def state(partition: Partition) -> CheckpointResponse:
        """The state and result of the checkpoint that was requested last."""
        _require(partition)
        try:
            return _shown(asked, partition)
        except CheckpointError as exc:
            raise HTTPException(404, str(exc)) from exc

    def _require(partition: int) -> None:
        if partition >= settings.kafka.partitions:
            raise HTTPException(
                404, f"there is no partition {partition}: kafka.partitions is {settings.kafka.partitions}"
            )

    def _shown(asked: AskedCheckpoints, partition: int) -> CheckpointResponse:
        one = asked.of(partition)
        return CheckpointResponse(
            partition=partition,
            worker=service.health.url,
            running=one.running,
            unchanged=one.unchanged,
            generation=one.generation,
            uploaded=one.uploaded,
            bytes=one.whole,
            error=one.error,
        )

    return api
