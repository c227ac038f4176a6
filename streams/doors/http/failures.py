"""The API's responses to failures. Each response has one text, which repeats no data of the request.

A response has the header `Retry-After` only if the same request may succeed later.
"""

from __future__ import annotations

import logging

from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    ProducerClosed,
    RecordListTooLargeError,
    UnknownError,
)
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from schemas.errors import (
    BrokerEmptied,
    BrokerUnavailable,
    ConsistencyTokenError,
    DataDirError,
    EmbeddingUnavailable,
    JournalError,
    MemoryNotFound,
    NotReady,
    OtherUser,
    ScopeMissing,
    ShardComingBack,
    ShardLocked,
    ShardNotHere,
    SiltstoneError,
    SummaryFilesError,
    TokenRefused,
)
from streams.doors.http.forwarding import later
from streams.doors.http.policies import methods_of
from streams.doors.http.refusals import refused
from streams.doors.http.unforeseen import Unforeseen
from streams.doors.http.wording import complaints

log = logging.getLogger(__name__)

BUSY = "the worker is busy or its broker does not answer; ask again"
#: Temporary errors of a broker, or of the connection to it, that aiokafka does not mark as retriable.
_PASSING = (KafkaConnectionError, KafkaTimeoutError, ProducerClosed, UnknownError)


def answer_failures(api: FastAPI) -> None:
    """Add handlers for all exceptions of the API, including exceptions of middleware that was already added.

    The handlers of `ShardNotHere` and `MemoryElsewhere` are not added here. They are in `Forwarding`.
    """
    for kind in (SiltstoneError, TimeoutError, KafkaError):
        api.exception_handler(kind)(_answered)
    api.exception_handler(HTTPException)(_declined)
    api.exception_handler(RequestValidationError)(_invalid)
    api.add_middleware(Unforeseen)


async def _answered(_: Request, exc: Exception) -> Response:
    return answer_to(exc)


async def _declined(request: Request, exc: Exception) -> Response:
    """Answer an `HTTPException`.

    If the status is 405, the header `Allow` lists the methods of all routes at the address. Starlette would list the
    methods of one route only.
    """
    assert isinstance(exc, HTTPException)
    allowed = methods_of(request.scope["path"]) if exc.status_code == 405 else ""
    headers = {"Allow": allowed} if allowed else dict(exc.headers or {})
    return refused(exc.status_code, exc.detail, headers)


async def _invalid(_: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)
    return refused(422, complaints(exc.errors()))


def answer_to(exc: Exception) -> JSONResponse:
    """Return the response to an exception. Its status is:

    - 401 if the token is missing or not valid
    - 403 if the token lacks a scope
    - 404 if there is no such memory, or if the token may not access the memory's user
    - 413 if the record is too large for the broker
    - 422 if the consistency token is not valid
    - 503 if the failure is temporary, or if the embedding model cannot be used
    - 500 for all other failures, which an operator must repair first
    """
    match exc:
        case TimeoutError() | BrokerUnavailable() | BrokerEmptied() | NotReady() | ShardLocked() | ShardNotHere():
            return later(str(exc) or BUSY)
        case ShardComingBack():
            return later(str(exc), exc.retry_after)
        case TokenRefused():
            return refused(401, str(exc), {"WWW-Authenticate": "Bearer"})
        case ScopeMissing():
            return refused(403, str(exc))
        case MemoryNotFound() | OtherUser():
            return refused(404, str(exc))
        case ConsistencyTokenError():
            return refused(422, str(exc))
        case EmbeddingUnavailable():
            return later(str(exc)) if exc.passing else refused(503, str(exc))
        case MessageSizeTooLargeError() | RecordListTooLargeError():
            return refused(413, "the record is larger than the broker accepts")
        case KafkaError() if exc.retriable or isinstance(exc, _PASSING):
            return later(BUSY)
        case KafkaError():
            return refused(500, f"the broker refuses the request: {type(exc).__name__}")
        # The texts of these errors contain local paths, which only the log may show.
        case DataDirError() | SummaryFilesError() | JournalError():
            log.error("a request could not be answered: %s", exc)
            return refused(500, f"{type(exc).__name__}: the worker's log says more")
        case SiltstoneError():
            log.error("a request could not be answered: %s", exc)
            return refused(500, str(exc))
        case _:
            return refused(500, f"{type(exc).__name__}: the worker's log says more")
