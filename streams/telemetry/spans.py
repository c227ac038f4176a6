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

#: Told what was found.
Found = Callable[[Sequence[SearchHit]], None]
#: The template of the route that a request (its method and path) goes to: None where it goes nowhere.
RouteOf = Callable[[str, str], str | None]


class Spans(Protocol):
    """Makes spans. While it is not `on`, frequent callers call nothing else of it."""

    @property
    def on(self) -> bool:
        """Whether anything is recorded."""

    def processing(self, topic: str, handle: BatchHandler) -> BatchHandler:
        """`handle`, in a span for each fetched batch of the topic."""

    def passed_on(self, record: Any) -> Headers:
        """For what follows from a record: the trace context that it came with, else that of the span around."""

    def outgoing(self) -> Headers:
        """For a record that is produced now: the trace context of the span around; none where there is none."""

    def searching(self, partition: int, text: str) -> AbstractContextManager[Found]:
        """A user's memories in the partition's shard are searched for a text."""

    def writing(self, partition: int, event: LongTermEvent) -> AbstractContextManager[None]:
        """An event about the partition's memories goes into the log."""

    def serving(self, app: ASGIApp, route_of: RouteOf) -> ASGIApp:
        """`app`, in a span for each request."""

    async def close(self) -> None:
        """Send what was recorded, within seconds."""


def _nobody_asks(hits: Sequence[SearchHit]) -> None:
    """What was found is not recorded."""


_UNSEARCHED: Final = nullcontext[Found](_nobody_asks)
_UNWRITTEN: Final = nullcontext[None](None)


class NoSpans:
    """Telemetry is off: batches are handled by their own handlers, and nothing is made for anything."""

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
        """There is nothing."""
