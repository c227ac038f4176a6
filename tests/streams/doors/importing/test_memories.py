"""Memories of OpenMemory and of our own exports become events: the same ones for the same file."""

from __future__ import annotations

import gzip
import io
import uuid
import zipfile
from typing import Any

import orjson
import pytest

from schemas.events import LONG_TERM_EVENT, Archive, Edit, LongTermEvent, Pin, Promotion, Remember, Supersede
from schemas.times import iso
from streams.doors.importing.formats import Format
from streams.doors.importing.found import Found, NotReadable, Record
from tests.streams.doors.importing.test_records import FOR_ANN, GIVEN, found, left_out, problems, taken_for
from tests.support.making import START

FIRST, SECOND, THIRD = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


def row(identity: str, content: str, state: str = "active", **more: Any) -> dict[str, Any]:
    return {
        "id": identity,
        "user_id": "a-row-of-users",
        "app_id": "app-1",
        "content": content,
        "metadata": {"source": "chat"},
        "state": state,
        "created_at": "2025-07-01T12:00:00+00:00",
        "updated_at": "2025-08-01T12:00:00+00:00",
        "archived_at": None,
        **more,
    }


ROWS = {
    "user": {"id": "a-row-of-users", "user_id": "ann", "name": None},
    "apps": [{"id": "app-1", "name": "cursor"}],
    "categories": [{"id": "c1", "name": "sports"}, {"id": "c2", "name": "food"}],
    "memories": [
        row(FIRST, "Likes skiing"),
        row(SECOND, "Lived in Oslo", "archived", archived_at="2025-09-01T00:00:00+00:00"),
        row(THIRD, "Forget me", "deleted"),
    ],
    "memory_categories": [{"memory_id": FIRST, "category_id": "c1"}, {"memory_id": FIRST, "category_id": "gone"}],
    "status_history": [],
    "access_controls": [],
    "export_meta": {"version": "1"},
}
LINES = [
    {
        "id": FIRST,
        "content": "Likes skiing",
        "metadata": {"source": "chat"},
        "created_at": "2025-07-01T12:00:00+00:00",
        "updated_at": None,
        "state": "active",
        "app": "cursor",
        "categories": ["sports"],
    },
    {"id": SECOND, "content": "Likes tea", "metadata": {}, "created_at": None, "state": "paused", "app": None},
]


def events(all_found: list[Found]) -> list[LongTermEvent]:
    records = [one for one in all_found if isinstance(one, Record)]
    assert all(one.lasting for one in records)
    return [LONG_TERM_EVENT.validate_json(one.value) for one in records]


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return out.getvalue()


def test_openmemorys_rows_are_remembered_with_ids_times_apps_and_categories() -> None:
    """What it laid aside lies in the archive; what it deleted is left out; the user is the named one, not the row."""
    read = found(ROWS, GIVEN)
    skiing, oslo, aside = events(read)
    assert (taken_for(read), left_out(read), problems(read)) == ([Format.OPENMEMORY], 1, [])
    assert isinstance(skiing, Remember)
    assert isinstance(oslo, Remember)
    assert isinstance(aside, Archive)
    assert (str(skiing.memory_id), skiing.user_id, skiing.text) == (FIRST, "ann", "Likes skiing")
    assert iso(skiing.timestamp) == "2025-07-01T12:00:00.000Z"
    assert skiing.metadata == {"categories": ["sports"], "source": "chat", "app_id": "cursor"}
    assert "importance" not in skiing.model_fields_set, "the worker finds it"
    assert (str(aside.memory_id), aside.reason, iso(aside.timestamp)[:10]) == (SECOND, "archived", "2025-09-01")
    assert [one.in_file for one in read if isinstance(one, Record)] == [True, True, False]
    assert found(ROWS, GIVEN) == read, "twice it is the same"


def test_openmemorys_lines_take_the_user_of_the_command() -> None:
    content = b"".join(orjson.dumps(line) + b"\n" for line in LINES)
    plain, packed = found(content), found(gzip.compress(content))
    assert plain == packed
    skiing, tea, aside = events(plain)
    assert [one.user_id for one in (skiing, tea, aside)] == ["ann"] * 3
    assert isinstance(aside, Archive)
    assert aside.reason == "paused"
    (problem, _) = problems(found(content, GIVEN))
    assert "no user is named: pass --user" in problem


def test_openmemorys_archive_is_opened_and_others_are_not() -> None:
    assert found(zipped(memories_json=orjson.dumps(ROWS)), GIVEN) == found(ROWS, GIVEN)
    for other, why in ((zipped(photos_json=b"[]"), "unpack it"), (b"PK\x03\x04 and no more", "damaged ZIP")):
        with pytest.raises(NotReadable, match=why):
            found(other)


def test_a_bad_row_is_told_and_the_rest_goes_on() -> None:
    rows = {**ROWS, "memories": [row(FIRST, ""), "no object", row(SECOND, "Likes tea")]}
    read = found(rows, GIVEN)
    assert len(problems(read)) == 2
    assert [str(one.memory_id) for one in events(read) if isinstance(one, Remember)] == [SECOND]


EXCHANGE = {
    "type": "memory",
    "id": FIRST,
    "user_id": "ann",
    "text": "Ann: I ski",
    "kind": "exchange",
    "importance": 82.5,
    "created_at": iso(START),
    "last_accessed": iso(START + 5000),
    "session_id": "s1",
    "message_ids": ["m1", "m2"],
    "speakers": ["Ann"],
    "promotion": {"reason": "weighted", "total": 700, "pinned": True},
    "metadata": {"mood": "fine"},
    "pinned": True,
}


def test_an_exported_exchange_is_the_promotion_that_it_was() -> None:
    (event,) = events(found([EXCHANGE], GIVEN))
    assert isinstance(event, Promotion)
    assert (str(event.memory_id), event.text, event.importance, event.pinned) == (FIRST, "Ann: I ski", 82.5, True)
    assert (event.started_at, event.timestamp, event.parts.total) == (START, START + 5000, 700)
    assert (event.speakers, event.metadata, event.message_ids) == (["Ann"], {"mood": "fine"}, ["m1", "m2"])


def test_an_exchange_gets_the_time_in_which_it_held_by_an_edit_and_others_are_made_with_it() -> None:
    line = {**EXCHANGE, "valid_from": iso(START - 5), "valid_to": iso(START + 9)}
    promoted, edit = events(found([line], GIVEN))
    assert isinstance(promoted, Promotion)
    assert isinstance(edit, Edit)
    assert (str(edit.memory_id), edit.valid_from, edit.valid_to) == (FIRST, START - 5, START + 9)
    assert (edit.text, edit.metadata) == (None, None)
    (remembered, *_) = events(found([{**line, "kind": "remember"}], GIVEN))
    assert isinstance(remembered, Remember)
    assert (remembered.valid_from, remembered.valid_to) == (START - 5, START + 9)


def test_what_was_remembered_and_pinned_comes_as_two_events() -> None:
    """It is as old as it was, and ages from its last access."""
    line = {**EXCHANGE, "kind": "remember", "promotion": None, "speakers": []}
    read = found([line], GIVEN)
    remembered, pin = events(read)
    assert isinstance(remembered, Remember)
    assert isinstance(pin, Pin)
    assert (remembered.created_at, remembered.timestamp, remembered.importance) == (START, START + 5000, 82.5)
    assert [one.in_file for one in read if isinstance(one, Record)] == [True, False]


@pytest.mark.parametrize("kind", ["exchange", "remember", "short_term", "summary_item"])
def test_who_wrote_it_is_what_its_line_says_and_not_its_metadata(kind: str) -> None:
    """A shard and the notes of a session pass over sources in metadata: the event alone says them."""
    line = {**EXCHANGE, "kind": kind, "pinned": False, "sources": ["token:app"]}
    (event,) = events(found([{**line, "metadata": {"siltstone.sources": ["token:other"]}}], GIVEN))
    assert isinstance(event, Promotion | Remember)
    assert event.sources == ["token:app"]


@pytest.mark.parametrize("seconds", [None, 60])
def test_an_item_is_one_again_and_one_that_was_written_since_is_another_event(seconds: int | None) -> None:
    """It is one event: an item is born pinned. What expires lasts from its last access on."""
    stored = {} if seconds is None else {"stored": {"ttl_seconds": seconds, "expires_at": iso(START)}}
    line = {**EXCHANGE, "kind": "item", "metadata": stored or None}
    (event,) = events(found([line], GIVEN))
    (later,) = events(found([{**line, "created_at": iso(START + 1000), "last_accessed": iso(START + 9000)}], GIVEN))
    assert isinstance(event, Remember)
    assert (event.kind, str(event.memory_id), event.ttl_seconds) == ("item", FIRST, seconds)
    assert event.timestamp == (START if seconds is None else START + 5000)
    assert event.event_id != later.event_id


def test_what_lasts_for_a_while_lasts_as_long() -> None:
    line = {**EXCHANGE, "kind": "short_term", "pinned": False, "expires_at": iso(START + 60_000)}
    (event,) = events(found([line], GIVEN))
    assert isinstance(event, Remember)
    assert (event.kind, event.timestamp, event.ttl_seconds) == ("short_term", START, 60)


def test_what_belongs_to_memories_comes_as_it_is_and_nothing_is_forgotten_by_a_file() -> None:
    common = {"event_id": FIRST, "timestamp": iso(START)}
    lines = [
        {**common, "type": "supersede", "memory_id": FIRST, "by": SECOND},
        {**common, "type": "forget", "memory_id": FIRST},
    ]
    read = found(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    (event,) = events(read)
    assert isinstance(event, Supersede)
    assert event.user_id == "ann"
    assert len(problems(read)) == 1


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("id", "x", "id: "),
        ("importance", 101, "importance: "),
        ("created_at", "once", "created_at: "),
        ("a", 1, "a: "),
    ],
)
def test_a_line_that_is_wrong_is_told(field: str, value: Any, why: str) -> None:
    read = found([{**EXCHANGE, field: value}], FOR_ANN)
    assert [problem.startswith(f"element 1: {why}") for problem in problems(read)] == [True]
