"""The interface through which a worker records spans, and an implementation that records none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, Protocol

from starlette.types import ASGIApp

from schemas.events import LongTermEvent
from schemas.memories import SearchHit
from schemas.topics import Headers
from streams.runtime.batch_handler import BatchHandler

#: Called with the hits of a search.
Found = Callable[[Sequence[SearchHit]], None]
#: Returns the template of the route that a request (method, path) matches, or None.
RouteOf = Callable[[str, str], str | None]


class Spans(Protocol):
    """Makes spans. If `on` is False, callers that run often do not call the other methods."""

    @property
    def on(self) -> bool:
        """True if spans are recorded."""

    def processing(self, topic: str, handle: BatchHandler) -> BatchHandler:
        """Wrap `handle` in a span for each fetched batch of the topic."""

    def passed_on(self, record: Any) -> Headers:
        """Return headers for records that are produced because of this one.

        They have this record's trace context; if it has none, the current span's.
        """

    def outgoing(self) -> Headers:
        """Return headers for a record that is produced now: the trace context of the current span, or nothing."""

    def searching(self, partition: int, text: str) -> AbstractContextManager[Found]:
        """Record a search for a text in a user's memories."""

    def writing(self, partition: int, event: LongTermEvent) -> AbstractContextManager[None]:
        """Record that an event about the partition's memories is written to the log."""

    def serving(self, app: ASGIApp, route_of: RouteOf) -> ASGIApp:
        """Wrap `app` in a span for each request."""

    async def close(self) -> None:
        """Send the spans that are not sent yet. This takes at most some seconds."""


def _nobody_asks(hits: Sequence[SearchHit]) -> None:
    """Ignore the hits: nothing is recorded."""


_UNSEARCHED: Final = nullcontext[Found](_nobody_asks)
_UNWRITTEN: Final = nullcontext[None](None)


class NoSpans:
    """`Spans` while telemetry is off: handlers and apps are returned as they are, and no span is made."""

    on: Final = False

    def processing(self, topic: str, handle: BatchHandler) -> BatchHandler:
        return handle

    def passed_on(self, record: Any) -> Headers:
        return ()

    def outgoing(self) -> Headers:
        return ()

    def searching(self, partition: int, text: str) -> AbstractContextManager[Found]:
        return _UNSEARCHED

    def writing(self, partition: int, event: LongTermEvent) -> AbstractContextManager[None]:
        return _UNWRITTEN

    def serving(self, app: ASGIApp, route_of: RouteOf) -> ASGIApp:
        return app

    async def close(self) -> None:
        """Do nothing, because there are no spans to send."""
