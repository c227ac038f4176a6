"""Events of long-term memory, and the records of the side topics."""

from __future__ import annotations

import uuid
from typing import Any, get_args

import orjson
import pytest
from pydantic import ValidationError

from schemas.dead_letters import DeadLetter
from schemas.events import (
    LONG_TERM_EVENT,
    Archive,
    Edit,
    Expire,
    Forget,
    ForgetUser,
    Link,
    LongTermEvent,
    Parts,
    Pin,
    Promotion,
    Remember,
    Remove,
    Restore,
    SummaryRequest,
    Supersede,
    Touch,
    Unlink,
    Unpin,
)
from schemas.ids import event_id
from tests.support.making import START, promotion

ID, OTHER = "94d1909b-ca98-5758-8c83-2cb9cb1301f9", "0f8fad5b-d9cb-469f-a165-70867728950e"
COMMON = {"event_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "user_id": "u", "timestamp": START}

EVENTS: dict[type[Any], dict[str, Any]] = {
    Promotion: {
        "type": "promotion",
        "memory_id": ID,
        "session_id": "s",
        "text": "hi",
        "message_ids": ["m1"],
        "importance": 80,
        "started_at": START,
        "parts": {"reason": "all"},
    },
    Remember: {"type": "remember", "text": "hi"},
    Touch: {"type": "touch", "memory_ids": [ID]},
    Link: {"type": "link", "source_id": ID, "target_id": OTHER},
    Unlink: {"type": "unlink", "source_id": ID, "target_id": OTHER},
    Forget: {"type": "forget", "memory_id": ID},
    Expire: {"type": "expire", "memory_id": ID, "expired_at": START},
    ForgetUser: {"type": "forget_user"},
    Pin: {"type": "pin", "memory_id": ID},
    Unpin: {"type": "unpin", "memory_id": ID},
    Edit: {"type": "edit", "memory_id": ID, "text": "hello"},
    Supersede: {"type": "supersede", "memory_id": ID, "by": OTHER},
    Archive: {"type": "archive", "memory_id": ID, "last_accessed": START},
    Restore: {"type": "restore", "memory_id": ID},
    Remove: {"type": "remove", "memory_id": ID},
}


def test_every_event_of_the_union_is_among_these() -> None:
    assert set(get_args(LongTermEvent)) == set(EVENTS)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"type": "edit", "memory_id": ID}, "text, metadata, valid_from"),
        ({"type": "edit", "memory_id": ID, "text": ""}, "at least 1"),
        ({"type": "remember", "kind": "short_term", "session_id": "s", "text": "x", "supersedes": [ID]}, "supersed"),
    ],
)
def test_an_event_that_would_do_nothing_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        LONG_TERM_EVENT.validate_python(COMMON | fields)


@pytest.mark.parametrize("model", EVENTS, ids=lambda model: str(EVENTS[model]["type"]))
def test_the_type_names_the_event(model: type[Any]) -> None:
    """And what is written reads back as the same event."""
    event = LONG_TERM_EVENT.validate_python(COMMON | EVENTS[model])
    assert type(event) is model
    assert LONG_TERM_EVENT.validate_json(event.model_dump_json()) == event


@pytest.mark.parametrize("kind", [{"type": "dream"}, {"type": None}, {"type": ["pin"]}, {}])
def test_an_unknown_type_is_refused(kind: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LONG_TERM_EVENT.validate_python(COMMON | {"memory_id": ID} | kind)


@pytest.mark.parametrize("missing", ["event_id", "user_id", "timestamp"])
def test_no_event_goes_without_id_user_and_time(missing: str) -> None:
    fields = {name: value for name, value in (COMMON | EVENTS[ForgetUser]).items() if name != missing}
    with pytest.raises(ValidationError, match=missing):
        LONG_TERM_EVENT.validate_python(fields)


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        (Promotion, {"importance": 100.1}),
        (Promotion, {"importance": -1}),
        (Promotion, {"importance": "much"}),
        (Promotion, {"memory_id": "m1"}),
        (Promotion, {"parts": {}}),
        (Remember, {"text": ""}),
        (Remember, {"text": "记" * 11_000}),
        (Remember, {"importance": 101}),
        (Remember, {"kind": "medium_term"}),
        (Remember, {"kind": "short_term", "session_id": "s", "importance": None}),
        (Remember, {"kind": "short_term", "session_id": "s", "ttl_seconds": 0}),
        (Remember, {"kind": "short_term", "session_id": "s", "ttl_seconds": 1.5}),
        (Remember, {"kind": "short_term", "session_id": "s", "ttl_seconds": 10**10}),
        (Remember, {"kind": "short_term", "session_id": ""}),
        (Touch, {"memory_ids": ["m1"]}),
        (Touch, {"memory_ids": [ID], "times": [1, 1]}),
        (Touch, {"memory_ids": [ID], "times": [0]}),
        (Link, {"weight": 1.1}),
        (Link, {"kind": ""}),
        (Forget, {"memory_id": None}),
        (ForgetUser, {"user_id": "u" * 257}),
        (ForgetUser, {"timestamp": True}),
    ],
)
def test_wrong_fields_of_an_event_are_refused(model: type[Any], wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LONG_TERM_EVENT.validate_python(COMMON | EVENTS[model] | wrong)


@pytest.mark.parametrize("model", [Promotion, Remember])
def test_metadata_that_json_writers_cannot_nest_is_refused(model: type[Any]) -> None:
    """It could be read and never be written into a shard: the worker would stop at it again and again."""
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(ValidationError):
        LONG_TERM_EVENT.validate_python(COMMON | EVENTS[model] | {"metadata": deep})


def remembered(**fields: Any) -> Remember:
    event = LONG_TERM_EVENT.validate_python(COMMON | EVENTS[Remember] | fields)
    assert isinstance(event, Remember)
    return event


def test_what_is_remembered_on_request_has_the_greatest_importance() -> None:
    assert remembered().importance == 100
    assert remembered().kind == "long_term"


def test_what_is_remembered_for_a_while_has_half_of_it() -> None:
    """Unless another is given: it is too little for a memory that lasts."""
    assert remembered(kind="short_term", session_id="s").importance == 50
    assert remembered(kind="short_term", session_id="s", importance=0).importance == 0


def test_a_short_term_memory_reads_back_as_it_was_written() -> None:
    event = remembered(kind="short_term", session_id="s", ttl_seconds=60)
    assert LONG_TERM_EVENT.validate_json(event.model_dump_json()) == event


def test_a_short_term_memory_belongs_to_a_session() -> None:
    with pytest.raises(ValidationError, match="belongs to a session: session_id is missing"):
        remembered(kind="short_term")


def test_a_long_term_memory_does_not_expire() -> None:
    with pytest.raises(ValidationError, match="ttl_seconds is for kinds short_term and item"):
        remembered(ttl_seconds=60)


def test_a_field_of_a_later_version_is_passed_over() -> None:
    """A worker that is not upgraded yet goes on reading the topic."""
    event = LONG_TERM_EVENT.validate_python(COMMON | EVENTS[Pin] | {"until": "tomorrow"})
    assert "until" not in event.model_dump()


def test_event_ids_are_deterministic() -> None:
    """The same parts give the same id; others, or the same cut in other places, another."""
    assert event_id("a", 1) == event_id("a", "1")
    assert len({event_id("a", "b"), event_id("ab"), event_id("b", "a"), event_id("a", "b", "")}) == 4


def test_a_promotion_says_that_it_is_pinned_where_it_is() -> None:
    """One of before the field is not; most are not, and do not say so."""
    plain = LONG_TERM_EVENT.validate_python(COMMON | EVENTS[Promotion])
    asked = LONG_TERM_EVENT.validate_python(COMMON | EVENTS[Promotion] | {"pinned": True})
    assert isinstance(plain, Promotion)
    assert (plain.pinned, b'"pinned"' in LONG_TERM_EVENT.dump_json(plain)) == (False, False)
    assert LONG_TERM_EVENT.validate_json(LONG_TERM_EVENT.dump_json(asked)) == asked != plain


def test_a_promotion_says_why_in_thousandths() -> None:
    parts = Parts(fullness=300, sentiment=200, content=0, value=7, total=570, reason="judged_important")
    written = orjson.loads(promotion("hi", "m1").model_copy(update={"parts": parts}).model_dump_json())["parts"]
    assert written == {
        "fullness": 300,
        "sentiment": 200,
        "content": 0,
        "value": 7,
        "total": 570,
        "reason": "judged_important",
    }


def test_a_dead_letters_headers_are_its_coordinates() -> None:
    """Names as other tools know them, values as UTF-8 bytes; they read back as the same letter."""
    letter = DeadLetter(
        source_topic="siltstone.conversations",
        source_partition=3,
        source_offset=42,
        error_type="not_json",
        error_message="值不是 JSON",
        failed_at="2026-01-01T00:00:00.000Z",
    )
    headers = letter.headers()
    assert headers == [
        ("source.topic", b"siltstone.conversations"),
        ("source.partition", b"3"),
        ("source.offset", b"42"),
        ("error.type", b"not_json"),
        ("error.message", "值不是 JSON".encode()),
        ("failed.at", b"2026-01-01T00:00:00.000Z"),
    ]
    assert DeadLetter.model_validate({name: value.decode() for name, value in headers}) == letter


@pytest.mark.parametrize("wrong", [{"date": "1.1.2026"}, {"reason": "bored"}, {"run_id": "one"}])
def test_a_summary_request_names_a_day_and_a_known_reason(wrong: dict[str, Any]) -> None:
    fields = {"run_id": str(uuid.UUID(ID)), "user_id": "u", "date": "2026-01-01", "reason": "manual"}
    assert SummaryRequest.model_validate(fields).messages == []
    with pytest.raises(ValidationError):
        SummaryRequest.model_validate(fields | wrong)
