"""The form of every refusal, regardless of the layer that refuses: one text that says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field


class Failure(BaseModel):
    detail: str = Field(description="one text: what is wrong, and what to do; it repeats nothing of the request")


def refused(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(Failure(detail=detail).model_dump(), status, headers=dict(headers or {}))


_MEANINGS: Final = {
    400: "The request ended before its body did",
    401: "No token that is known",
    403: "The token lacks the scope, or a page of another site has sent this",
    404: "There is no such thing, or not of this user",
    408: "The body did not come in time",
    413: "The body, or what becomes of it, is too large",
    415: "The request is not written in JSON",
    421: "The Host is no name of this worker",
    422: "The request says something that it must not, or lacks something",
    500: "A fault that an operator must repair first",
    503: "Not now; ask again after `Retry-After`, where that is given",
}
#: For OpenAPI: the refusals of any route.
REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": Failure, "description": meaning} for status, meaning in _MEANINGS.items()
}


def because(status: int, meaning: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI entry for a refusal of one route."""
    return {status: {"model": Failure, "description": meaning}}
