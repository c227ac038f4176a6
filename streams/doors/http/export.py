"""The route that exports a user's data."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from schemas.ids import Id
from streams.doors.http.consistency import Consistency
from streams.doors.http.user_export import exported
from streams.service import MemoryService


def export_routes(service: MemoryService) -> APIRouter:
    """Return the route of `/v1/export`, for this worker's users."""
    api = APIRouter(tags=["memories"])

    @api.get(
        "/v1/export",
        dependencies=Consistency(service).reads,
        response_class=StreamingResponse,
        responses={200: {"content": {"application/x-ndjson": {}}, "description": "One JSON object per line"}},
    )
    async def export(user_id: Id) -> StreamingResponse:
        """The user's memories and window messages, as lines of JSON. `siltstone import jsonl` reads them.

        This does not count as an access. Vectors, histories, access counts and daily summaries are not included.
        """
        return StreamingResponse(iter(await exported(service, user_id)), media_type="application/x-ndjson")

    return api
