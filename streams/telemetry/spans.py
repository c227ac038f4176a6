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

#: A function to call with the hits of a search, so that they are recorded in its span.
Found = Callable[[Sequence[SearchHit]], None]
#: Returns the template of the route that a request (method, path) matches, or None.
RouteOf = Callable[[str, str], str | None]


class Spans(Protocol):
    """Makes spans. If `on` is False, code that runs often does not call the methods, to save time."""

    @property
    def on(self) -> bool:
        """True if spans are recorded."""

    def processing(self, topic: str, handle: BatchHandler) -> BatchHandler:
        """Wrap `handle` in a span for each fetched batch of the topic."""

    def passed_on(self, record: Any) -> Headers:
        """Return trace headers for the records that are produced because of `record`.

        They have the trace context of `record`. If it has none, they have the context of the current span.
        """

    def outgoing(self) -> Headers:
        """Return trace headers for a record that is produced now: the context of the current span, or no headers."""

    def searching(self, partition: int, text: str) -> AbstractContextManager[Found]:
        """Record a search for a text in a user's memories."""

    def writing(self, partition: int, event: LongTermEvent) -> AbstractContextManager[None]:
        """Record that an event about the partition's memories is written to the log."""

    def serving(self, app: ASGIApp, route_of: RouteOf) -> ASGIApp:
        """Wrap `app` in a span for each request."""

    async def close(self) -> None:
        """Send the spans that are not sent yet. This takes at most some seconds."""


def _ignore(hits: Sequence[SearchHit]) -> None:
    """Ignore the hits, because no span records them."""


_UNSEARCHED: Final = nullcontext[Found](_ignore)
_UNWRITTEN: Final = nullcontext[None](None)


class NoSpans:
    """The implementation of `Spans` while telemetry is off. Handlers and apps are returned as they are."""

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
