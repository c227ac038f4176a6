"""Routes that replace the embedding model of this worker's shards."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas.errors import ReembeddingRefused, SettingsError
from schemas.settings import EmbeddingSettings, InputTypeName
from streams.doors.http.refusals import because
from streams.doors.http.wording import complaints
from streams.memory.reembedding import Phase, to_set
from streams.service import MemoryService


class NewModel(BaseModel):
    """The new model. The key and URL of a service come from the worker's settings."""

    model_config = ConfigDict(extra="forbid")

    backend: str = Field(description="use, e5, sentence-transformers or openai; auto: the present model")
    model: str = Field(default="", description="empty: the backend's default")
    dimensions: int | None = Field(default=None, description="if given, requested from the service")
    query_prefix: str | None = Field(default=None, description="before each question; null: the model's own")
    document_prefix: str | None = Field(default=None, description="before each memory; null: the model's own")
    query_input_type: str | None = Field(default=None, description="the service's word for a question")
    document_input_type: str | None = Field(default=None, description="the service's word for a memory")
    input_type_name: InputTypeName = Field(default="input_type", description="the service's parameter for that word")


class ReembedResponse(BaseModel):
    phase: Phase
    backend: str
    model: str | None = Field(description="its name in the shards; null until it is loaded")
    dimension: int | None
    done: int = Field(description="finished vectors, of `total`; new memories raise `total`")
    total: int
    switched: int = Field(description="shards that use the new model, of `shards`")
    shards: int
    waiting_for: str = Field(description="why embedding waits at the moment; empty if it does not")
    error: str = Field(description="why it failed; finished vectors are kept, and the same request resumes")
    settings: dict[str, Any] = Field(
        description="settings to change before the worker's next start, once `phase` is `done`"
    )


class Abandoned(BaseModel):
    stopped: bool
    dropped: list[int] = Field(description="shards whose unfinished vectors were dropped")


def reembedding_routes(service: MemoryService) -> APIRouter:
    """Return the routes of `/v1/reembed`, which begin, show and stop a re-embedding."""
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
            **because(409, "Another change of the model is under way"),
            **because(422, "There is no such model, or its service has no key"),
        },
    )
    async def begin(wanted: NewModel) -> ReembedResponse:
        """Embed every memory of this worker's shards with another model, then switch to it.

        Searches and writes use the old model until then. After an interruption, the same request resumes the work.
        """
        try:
            settings = EmbeddingSettings.model_validate({**dict(before), **wanted.model_dump()})
            embedder = (
                reembedder.settings
                if settings.backend == "auto"
                else service.settings.model_copy(update={"embedding": settings}).embedder()
            )
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
        """The progress of the re-embedding.

        At the end, `phase` is `done`, `failed` or `stopped`. It is `idle` if no re-embedding was requested.
        """
        return state()

    @api.delete("/v1/reembed", responses=because(409, "Shards already use the new model"))
    async def stop(
        abandon: Annotated[bool, Query(description="drop unfinished vectors instead of keeping them")] = False,
    ) -> Abandoned:
        """Stop the re-embedding. Finished vectors are kept for the next request, unless `abandon` is set."""
        stopped = reembedder.running
        try:
            dropped = await reembedder.abandon() if abandon else []
            await reembedder.stop()
        except ReembeddingRefused as exc:
            raise HTTPException(409, str(exc)) from exc
        return Abandoned(stopped=stopped, dropped=dropped)

    return api
