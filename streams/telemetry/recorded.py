"""The implementation of `Spans` that records spans, with one tracer for all kinds of spans."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Any, Final

from opentelemetry import trace
from starlette.types import ASGIApp

from schemas.events import LongTermEvent
from schemas.topics import Headers
from streams.runtime.batch_handler import BatchHandler
from streams.telemetry.batches import processing
from streams.telemetry.operations import Operations
from streams.telemetry.requests import TracedRequests
from streams.telemetry.spans import Found, RouteOf
from streams.telemetry.trace_context import context_of, given, record_headers


class RecordedSpans:
    """The implementation of `Spans` with a tracer `provider`.

    If `content` is true, the texts of questions and memories are recorded as well. `close` calls `end`, which sends
    the spans that the provider still holds.
    """

    on: Final = True

    def __init__(
        self,
        provider: trace.TracerProvider,
        group_id: str,
        content: bool = False,
        end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._tracer, self._group_id, self._end = (
            provider.get_tracer("siltstone", version("siltstone")),
            group_id,
            end,
        )
        self._operations = Operations(self._tracer, group_id, content)

    def processing(self, topic: str, handle: BatchHandler) -> BatchHandler:
        return processing(self._tracer, self._group_id, topic, handle)

    def passed_on(self, record: Any) -> Headers:
        came_with = context_of(*given(record.headers))
        return self.outgoing() if came_with is None else record_headers(came_with)

    def outgoing(self) -> Headers:
        return record_headers(trace.get_current_span().get_span_context())

    def searching(self, partition: int, text: str) -> AbstractContextManager[Found]:
        return self._operations.searching(partition, text)

    def writing(self, partition: int, event: LongTermEvent) -> AbstractContextManager[None]:
        return self._operations.writing(partition, event)

    def serving(self, app: ASGIApp, route_of: RouteOf) -> ASGIApp:
        return TracedRequests(app, self._tracer, route_of)

    async def close(self) -> None:
        if self._end is not None:
            await self._end()
