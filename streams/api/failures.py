"""What the API answers where something fails: 503 and `Retry-After` only for what may be over when asked again."""

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
from fastapi.responses import JSONResponse

from schemas.errors import (
    BrokerEmptied,
    BrokerUnavailable,
    ConsistencyTokenError,
    EmbeddingUnavailable,
    MemoryNotFound,
    NotReady,
    OtherUser,
    ScopeMissing,
    ShardComingBack,
    ShardLocked,
    ShardNotHere,
    SiltstoneError,
    TokenRefused,
)
from streams.api.forwarding import later

log = logging.getLogger(__name__)

BUSY = "the worker is busy or its broker does not answer; ask again"
#: What a broker, or the way to it, says that may be otherwise in a moment, beside what Kafka calls retriable.
_PASSING = (KafkaConnectionError, KafkaTimeoutError, ProducerClosed, UnknownError)


def answer_failures(api: FastAPI) -> None:
    """Have every exception of a route answered. `ShardNotHere` is for forwarding."""
    for kind in (SiltstoneError, TimeoutError, KafkaError, Exception):
        api.exception_handler(kind)(_answered)


async def _answered(_: Request, exc: Exception) -> Response:
    return answer_to(exc)


def answer_to(exc: Exception) -> JSONResponse:
    """401 and 403 what a token does not allow, 404 what is not there, 413 what no broker takes, 503 what passes.

    422 is what is no consistency token of ours, and 500 what somebody has to mend first.
    """
    match exc:
        case TimeoutError() | BrokerUnavailable() | BrokerEmptied() | NotReady() | ShardLocked() | ShardNotHere():
            return later(str(exc) or BUSY)
        case ShardComingBack():
            return later(str(exc), exc.retry_after)
        case TokenRefused():
            return JSONResponse({"detail": str(exc)}, 401, headers={"WWW-Authenticate": "Bearer"})
        case ScopeMissing():
            return JSONResponse({"detail": str(exc)}, 403)
        case MemoryNotFound() | OtherUser():
            return JSONResponse({"detail": str(exc)}, 404)
        case ConsistencyTokenError():
            return JSONResponse({"detail": str(exc)}, 422)
        case EmbeddingUnavailable():
            return later(str(exc)) if exc.passing else JSONResponse({"detail": str(exc)}, 503)
        case MessageSizeTooLargeError() | RecordListTooLargeError():
            return JSONResponse({"detail": "it is larger than the broker takes"}, 413)
        case KafkaError() if exc.retriable or isinstance(exc, _PASSING):
            return later(BUSY)
        case KafkaError():
            return JSONResponse({"detail": f"the broker refuses it: {type(exc).__name__}"}, 500)
        case SiltstoneError():
            log.error("a request could not be answered: %s", exc)
            return JSONResponse({"detail": str(exc)}, 500)
        case _:
            return JSONResponse({"detail": f"{type(exc).__name__}: the worker's log says more"}, 500)
