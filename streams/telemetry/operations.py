"""Operations on memories as spans, by OpenTelemetry's conventions for generative AI (`gen_ai.memory.*`).

The spans wrap the use cases of `MemoryService`, so they are the same for HTTP, MCP and all other callers of it. In
these conventions, a store is the shard of a partition, named `<consumer group>/<partition>`. No span records a user
id, because it is often an e-mail address or a phone number. A hash of the id would not help: the id can be found by
trying values.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from opentelemetry.trace import Span, SpanKind, Tracer

from schemas.events import Edit, LongTermEvent, Remember
from schemas.memories import SearchHit
from streams.telemetry.faults import failed
from streams.telemetry.spans import Found

#: The name of the operation for the writing of an event, by event type. Events about links are missing, because a
#: link lies between two memories, and the conventions have only operations on memories.
OPERATIONS: Final = {
    "remember": "create_memory",
    **dict.fromkeys(("archive", "edit", "pin", "restore", "supersede", "unpin"), "update_memory"),
    **dict.fromkeys(("forget", "forget_user", "remove"), "delete_memory"),
}


class Operations:
    """Makes the spans of operations on memories. If `content` is True, they record queries and texts of memories."""

    def __init__(self, tracer: Tracer, group_id: str, content: bool) -> None:
        self._tracer, self._group_id, self._content = tracer, group_id, content

    @contextmanager
    def searching(self, partition: int, text: str) -> Iterator[Found]:
        with self._operation("search_memory", partition) as span:
            if self._content:
                span.set_attribute("gen_ai.memory.query.text", text)

            def found(hits: Sequence[SearchHit]) -> None:
                span.set_attribute("gen_ai.memory.record.count", len(hits))
                if self._content:
                    self._records(
                        span, [{"id": str(hit.id), "content": hit.memory, "score": hit.relevance} for hit in hits]
                    )

            yield found

    @contextmanager
    def writing(self, partition: int, event: LongTermEvent) -> Iterator[None]:
        operation = OPERATIONS.get(event.type)
        if operation is None:
            yield
            return
        with self._operation(operation, partition) as span:
            if (record_id := _memory_of(event)) is not None:  # an event without an id is about all memories
                span.set_attribute("gen_ai.memory.record.id", str(record_id))
                span.set_attribute("gen_ai.memory.record.count", 1)
            if self._content and isinstance(event, Remember | Edit) and event.text is not None:
                self._records(span, [{"id": str(record_id), "content": event.text}])
            yield

    @contextmanager
    def _operation(self, name: str, partition: int) -> Iterator[Span]:
        attributes = {
            "gen_ai.operation.name": name,
            "gen_ai.provider.name": "siltstone",
            "gen_ai.memory.store.id": f"{self._group_id}/{partition}",
        }
        with self._tracer.start_as_current_span(
            name, kind=SpanKind.INTERNAL, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as exc:
                failed(span, exc)
                raise

    def _records(self, span: Span, records: list[dict[str, Any]]) -> None:
        """Record memories as JSON, because a span's attribute cannot hold objects."""
        span.set_attribute("gen_ai.memory.records", json.dumps(records, ensure_ascii=False))


def _memory_of(event: LongTermEvent) -> uuid.UUID | None:
    """Return the id of the memory that an event is about. A new memory without an id has the event's id."""
    given: uuid.UUID | None = getattr(event, "memory_id", None)
    return event.event_id if given is None and isinstance(event, Remember) else given
