"""Spans of a worker, kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from streams.telemetry.recorded import RecordedSpans
from tests.support.waiting import until


class KeptSpans(RecordedSpans):
    """`RecordedSpans`, and what they recorded."""

    def __init__(self, group_id: str = "siltstone", content: bool = False) -> None:
        self._kept = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        super().__init__(provider, group_id, content)

    def named(self, name: str) -> list[ReadableSpan]:
        """Those that have ended, in that order."""
        return [span for span in self._kept.get_finished_spans() if span.name == name]

    def each(self) -> Iterator[ReadableSpan]:
        return iter(self._kept.get_finished_spans())

    def clear(self) -> None:
        self._kept.clear()

    async def until(self, name: str, wanted: Callable[[ReadableSpan], bool] = lambda span: True) -> ReadableSpan:
        """The first one of that name that is wanted, when it has ended."""

        def ended() -> list[ReadableSpan]:
            return [span for span in self.named(name) if wanted(span)]

        await until(ended)
        return ended()[0]


def texts_in(spans: Iterator[ReadableSpan]) -> str:
    """All that they say, in one text."""
    return "\n".join(span.to_json() for span in spans)
