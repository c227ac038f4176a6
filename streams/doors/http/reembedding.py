"""`/v1/reembed`: another embedding model for this worker's shards."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas.errors import ReembeddingRefused, SettingsError
from schemas.settings import EmbeddingSettings
from streams.doors.http.refusals import because
from streams.doors.http.wording import complaints
from streams.memory.reembedding import Phase, to_set
from streams.service import MemoryService


class NewModel(BaseModel):
    """The model that is wanted. Key and URL of a service are those of the worker's settings."""

    model_config = ConfigDict(extra="forbid")

    backend: str = Field(description="use, sentence-transformers or openai")
    model: str = Field(default="", description="empty: the backend's default")
    dimensions: int | None = Field(default=None, description="asked of the service, where given")


class ReembedResponse(BaseModel):
    phase: Phase
    backend: str
    model: str | None = Field(description="as the shards record it; null until it is loaded")
    dimension: int | None
    done: int = Field(description="vectors that are there, of `total`; memories that come in meanwhile are added")
    total: int
    switched: int = Field(description="shards that work with the new model, of `shards`")
    shards: int
    waiting_for: str = Field(description="why nothing is embedded at the moment; empty where nothing is in the way")
    error: str = Field(description="why it failed; what is done is kept, and the same request goes on")
    settings: dict[str, Any] = Field(description="what is to be set before the worker's next start, when it is done")


class Abandoned(BaseModel):
    stopped: bool
    dropped: list[int] = Field(description="shards of which half-done vectors were dropped")


def reembedding_routes(service: MemoryService) -> APIRouter:
    """Begin, watch, stop."""
    api = APIRouter(tags=["operations"])
    reembedder = service.reembedder
    before = service.settings.embedding

    def state() -> ReembedResponse:
        progress, model = reembedder.progress, reembedder.progress.model
        return ReembedResponse(
            phase=progress.phase,
            backend=reembedder.wanted.backend,
            model=model.name if model else None,
            dimension=model.dimension if model else None,
            done=progress.done,
            total=progress.total,
            switched=len(progress.switched),
            shards=len(service.shards.partitions()),
            waiting_for=reembedder.waiting_for,
            error=progress.error,
            settings=to_set(reembedder.wanted, before),
        )

    @api.post(
        "/v1/reembed",
        status_code=202,
        responses={
            **because(409, "Another change is under way"),
            **because(422, "There is no such model, or its service has no key"),
        },
    )
    async def begin(wanted: NewModel) -> ReembedResponse:
        """Give every memory of this worker's shards a vector of another model, and change over to it.

        Searches and writes go on with the old model until then. It goes on where it was interrupted.
        """
        try:
            settings = EmbeddingSettings.model_validate({**dict(before), **wanted.model_dump()})
            embedder = service.settings.model_copy(update={"embedding": settings}).embedder()
        except ValidationError as exc:
            raise HTTPException(
                422, complaints({**error, "loc": ("body", *error["loc"])} for error in exc.errors())
            ) from exc
        except SettingsError as exc:
            raise HTTPException(422, "; ".join(exc.problems)) from exc
        try:
            reembedder.begin(embedder)
        except ReembeddingRefused as exc:
            raise HTTPException(409, str(exc)) from exc
        return state()

    @api.get("/v1/reembed")
    async def progress() -> ReembedResponse:
        """How far it is; `phase` is `done`, `failed` or `stopped` at the end, and `idle` where none was asked for."""
        return state()

    @api.delete("/v1/reembed", responses=because(409, "Shards have changed over already"))
    async def stop(
        abandon: Annotated[bool, Query(description="drop what is half done, instead of keeping it")] = False,
    ) -> Abandoned:
        """Stop. What is done is kept for the next time, unless it is to be dropped."""
        stopped = reembedder.running
        try:
            dropped = await reembedder.abandon() if abandon else []
            await reembedder.stop()
        except ReembeddingRefused as exc:
            raise HTTPException(409, str(exc)) from exc
        return Abandoned(stopped=stopped, dropped=dropped)

    return api
