"""The JSON form of the API's refusals: one text that says what is wrong and what to do. All layers use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field


class Failure(BaseModel):
    detail: str = Field(description="one text: what is wrong and what to do; it repeats nothing of the request")


def refused(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(Failure(detail=detail).model_dump(), status, headers=dict(headers or {}))


_MEANINGS: Final = {
    400: "The request ended before its body was complete",
    401: "The token is missing or not known",
    403: "The token lacks the scope, or a page of another site sent the request",
    404: "Not found, or not of this user",
    408: "The body did not arrive in time",
    413: "The body, or the record made from it, is too large",
    415: "The request is not sent as JSON",
    421: "The Host is not a name of this worker",
    422: "A value of the request is invalid or missing",
    500: "A fault that an operator must repair first",
    503: "Not available now; ask again after `Retry-After`, if it is given",
}
#: The refusals that any route may return, for the OpenAPI description.
REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": Failure, "description": meaning} for status, meaning in _MEANINGS.items()
}


def because(status: int, meaning: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI entry for a refusal that a particular route may return."""
    return {status: {"model": Failure, "description": meaning}}
