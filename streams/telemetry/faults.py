"""Records failures in spans: only the type of an error, because its text may name a user or quote a message."""

from __future__ import annotations

from opentelemetry.trace import Span, Status, StatusCode

from schemas.errors import ShardNotHere


def failed(span: Span, exc: BaseException) -> None:
    """Record the type of the error, but not its text, which may name a user or quote a message.

    `ShardNotHere` does not count as a failure, because the request is forwarded, and another worker answers it.
    """
    if isinstance(exc, ShardNotHere):
        span.set_attribute("siltstone.not_here", True)
        return
    span.set_attribute("error.type", type(exc).__qualname__)
    span.set_status(Status(StatusCode.ERROR))
