"""Operations on memories as spans: the conventions' names, nobody's words, and no user's id."""

from __future__ import annotations

import json
import uuid

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from schemas.errors import MemoryNotFound, ShardNotHere
from schemas.events import (
    Archive,
    Edit,
    Forget,
    ForgetUser,
    Link,
    LongTermEvent,
    Pin,
    Remember,
    Remove,
    Restore,
    Supersede,
    Touch,
    Unlink,
    Unpin,
)
from schemas.memories import SearchHit, State
from tests.support.making import START
from tests.support.spans import KeptSpans, texts_in

ONE, OTHER, EVENT = (uuid.UUID(int=n) for n in (1, 2, 3))
COMMON = {"event_id": EVENT, "user_id": "ann@example.com", "timestamp": START}

HIT = SearchHit(
    id=ONE,
    memory="I live in Oslo",
    relevance=0.9,
    score=80,
    state=State.ACTIVE,
    importance=80,
    kind="exchange",
    created_at="2026-01-01T00:00:00Z",
    session_id="s",
    agent_id=None,
    message_ids=["m"],
    metadata={},
    superseded_by=None,
    summarized_by=None,
)


@pytest.mark.parametrize(
    ("event", "operation", "record_id"),
    [
        (Remember(**COMMON, text="Oslo"), "create_memory", EVENT),
        (Remember(**COMMON, text="Oslo", memory_id=ONE), "create_memory", ONE),
        (Edit(**COMMON, memory_id=ONE, text="Bergen"), "update_memory", ONE),
        (Pin(**COMMON, memory_id=ONE), "update_memory", ONE),
        (Unpin(**COMMON, memory_id=ONE), "update_memory", ONE),
        (Supersede(**COMMON, memory_id=ONE, by=OTHER), "update_memory", ONE),
        (Archive(**COMMON, memory_id=ONE), "update_memory", ONE),
        (Restore(**COMMON, memory_id=ONE), "update_memory", ONE),
        (Forget(**COMMON, memory_id=ONE), "delete_memory", ONE),
        (Remove(**COMMON, memory_id=ONE), "delete_memory", ONE),
        (ForgetUser(**COMMON), "delete_memory", None),
    ],
    ids=lambda value: value.type if hasattr(value, "type") else None,
)
def test_writing_an_event_is_an_operation(event: LongTermEvent, operation: str, record_id: uuid.UUID | None) -> None:
    """Without a record's id, all of the user's memories are meant."""
    spans = KeptSpans("workers")
    with spans.writing(2, event):
        pass
    (span,) = spans.each()
    assert (span.name, span.kind) == (operation, SpanKind.INTERNAL)
    expected: dict[str, object] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": "siltstone",
        "gen_ai.memory.store.id": "workers/2",
    }
    if record_id is not None:
        expected |= {"gen_ai.memory.record.id": str(record_id), "gen_ai.memory.record.count": 1}
    assert span.attributes == expected


@pytest.mark.parametrize(
    "event",
    [
        Link(**COMMON, source_id=ONE, target_id=OTHER),
        Unlink(**COMMON, source_id=ONE, target_id=OTHER),
        Touch(**COMMON, memory_ids=[ONE]),
    ],
    ids=lambda event: event.type,
)
def test_what_changes_no_memory_is_no_operation(event: LongTermEvent) -> None:
    spans = KeptSpans()
    with spans.writing(0, event):
        pass
    assert list(spans.each()) == []


def test_a_search_says_how_many_it_found() -> None:
    spans = KeptSpans("workers")
    with spans.searching(1, "Where do I live?") as found:
        found([HIT, HIT])
    (span,) = spans.each()
    assert (span.name, span.attributes) == (
        "search_memory",
        {
            "gen_ai.operation.name": "search_memory",
            "gen_ai.provider.name": "siltstone",
            "gen_ai.memory.store.id": "workers/1",
            "gen_ai.memory.record.count": 2,
        },
    )


def test_nothing_says_what_was_said_or_by_whom() -> None:
    spans = KeptSpans()
    with spans.searching(0, "Where do I live?") as found:
        found([HIT])
    for event in (Remember(**COMMON, text="I live in Oslo"), Edit(**COMMON, memory_id=ONE, text="I live in Bergen")):
        with spans.writing(0, event):
            pass
    said = texts_in(spans.each())
    assert [word for word in ("live", "Oslo", "Bergen", "ann") if word in said] == []


def test_texts_are_recorded_where_they_are_asked_for() -> None:
    spans = KeptSpans(content=True)
    with spans.searching(0, "Where do I live?") as found:
        found([HIT])
    with spans.writing(0, Remember(**COMMON, text="I live in Oslo", memory_id=ONE)):
        pass
    search, create = (dict(span.attributes or {}) for span in spans.each())
    assert search["gen_ai.memory.query.text"] == "Where do I live?"
    (hit,) = json.loads(str(search["gen_ai.memory.records"]))
    assert hit == {"id": str(ONE), "content": "I live in Oslo", "score": 0.9}
    assert json.loads(str(create["gen_ai.memory.records"])) == [{"id": str(ONE), "content": "I live in Oslo"}]


def test_what_fails_is_named_by_its_kind_alone() -> None:
    """An error's text may name the user."""
    spans = KeptSpans()
    with pytest.raises(MemoryNotFound), spans.searching(0, "q"):
        raise MemoryNotFound("user ann has no memory")
    (span,) = spans.each()
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert dict(span.attributes or {})["error.type"] == "MemoryNotFound"
    assert "ann" not in texts_in(spans.each())


def test_what_is_forwarded_to_its_owner_has_not_failed() -> None:
    spans = KeptSpans()
    with pytest.raises(ShardNotHere), spans.searching(0, "q"):
        raise ShardNotHere(0, "its partition is on another worker")
    (span,) = spans.each()
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes or {})["siltstone.not_here"] is True
