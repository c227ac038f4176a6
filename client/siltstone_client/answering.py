"""Turns a worker's HTTP response into a typed answer, and an error response, or a missing response, into an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import httpx
from pydantic import ValidationError

from siltstone_client.answers import Answer, Written
from siltstone_client.calls import Call
from siltstone_client.errors import (
    InvalidRequest,
    NotFound,
    NotYetApplied,
    Refused,
    ScopeMissing,
    ServerError,
    TokenRefused,
    Unavailable,
    Unreachable,
    UnreadableAnswer,
)
from siltstone_client.own_writes import OwnWrites

T = TypeVar("T", bound=Answer)

#: The maximum number of characters that an error quotes from a response that is not Siltstone's.
_SHOWN_CHARS = 200
_KINDS: Mapping[int, type[Refused]] = {
    400: InvalidRequest,
    401: TokenRefused,
    403: ScopeMissing,
    404: NotFound,
    409: InvalidRequest,
    413: InvalidRequest,
    422: InvalidRequest,
}
_PASSING = (429, 502, 503, 504)


def answer_of(call: Call[T], response: httpx.Response, own: OwnWrites | None) -> T:
    """The typed answer to a call. If the call is a write, `own` notes it, so that later reads can wait for it.

    Raises `Refused`, `UnreadableAnswer`, or `NotYetApplied`.
    """
    if not response.is_success:
        raise _refusal(response)
    try:
        answer = call.answer.model_validate_json(response.content)
    except ValidationError as exc:
        raise UnreadableAnswer(
            f"{response.request.method} {response.request.url.path}: HTTP {response.status_code}, but the content is "
            f"not Siltstone's ({_complaint(exc)}): check that the address is that of a worker's API"
        ) from None  # `from None`: pydantic's error would show the response's content
    if isinstance(answer, Written) and own is not None:
        own.note(call, answer)
    if isinstance(answer, Written) and call.must_apply and answer.applied is not True:
        raise NotYetApplied(answer)
    return answer


def unanswered(url: httpx.URL, exc: httpx.RequestError | httpx.InvalidURL) -> Exception:
    """The error for a request without a response: `Unreachable`, or `ValueError` if the request's URL is too long."""
    if isinstance(exc, httpx.InvalidURL):
        return ValueError("the request's URL is too long: shorten the query or the id")
    sent = not isinstance(exc, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    why = "did not answer in time" if isinstance(exc, httpx.TimeoutException) else "does not answer"
    return Unreachable(f"the worker at {url} {why} ({type(exc).__name__})", sent)


def _refusal(response: httpx.Response) -> Refused:
    detail, status = _detail(response), response.status_code
    if status in _PASSING:
        return Unavailable(status, detail, _seconds(response.headers.get("retry-after")))
    return _KINDS.get(status, ServerError)(status, detail)


def _detail(response: httpx.Response) -> str:
    try:
        said: Any = response.json()["detail"]
    except (ValueError, KeyError, TypeError):
        said = response.text[:_SHOWN_CHARS] or response.reason_phrase
    if isinstance(said, list):  # these are pydantic's errors: keep the field and the reason, leave out the value
        said = "; ".join(_of_field(one) for one in said)
    return " ".join(str(said).split())


def _of_field(one: Any) -> str:
    if not isinstance(one, dict):
        return str(one)
    where = ".".join(str(part) for part in one.get("loc", ()) if part != "body")
    return f"{where}: {one.get('msg', 'invalid')}" if where else str(one.get("msg", "invalid"))


def _complaint(exc: ValidationError) -> str:
    first = exc.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else "not a JSON object"


def _seconds(given: str | None) -> float | None:
    """The seconds in the header `Retry-After`, or None if it is missing or is a date, as a proxy may write it."""
    try:
        return max(0.0, float(given)) if given is not None else None
    except ValueError:
        return None
