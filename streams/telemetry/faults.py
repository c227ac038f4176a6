"""How a span says that something failed: by the kind of error alone."""

from __future__ import annotations

from opentelemetry.trace import Span, Status, StatusCode

from schemas.errors import ShardNotHere


def failed(span: Span, exc: BaseException) -> None:
    """Note it. Its text stays out: it may name a user, and a library's may quote what was said.

    What is another worker's is answered by that worker: it is forwarded, and has not failed.
    """
    if isinstance(exc, ShardNotHere):
        span.set_attribute("siltstone.not_here", True)
        return
    span.set_attribute("error.type", type(exc).__qualname__)
    span.set_status(Status(StatusCode.ERROR))
