"""Notes: rows that read back as they were written, found by user, session and id."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables.windows.rows import Change
from tables.windows.session_notes import Note, Notes, decode_note, encode_note, note_key
from tests.support.making import START

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBERS = st.integers(0, 2**53)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
NOTES = st.builds(
    Note,
    st.uuids(),
    st.uuids(),
    TEXT,
    TEXT,
    TEXT,
    st.floats(0, 100),
    NUMBERS,
    NUMBERS,
    st.none() | TEXT,
    st.none() | st.dictionaries(TEXT, JSON, max_size=3),
    st.booleans(),
)


def note(number: int, *, user: str = "u", session: str = "s", at: int = 0, **fields: Any) -> Note:
    """The note with this number, a day to live; its event's id is another than its own."""
    created = START + at * 1000
    mine, event = uuid.UUID(int=number), uuid.UUID(int=1000 + number)
    return Note(mine, event, user, session, f"note {number}", 50.0, created, created + 86_400_000)._replace(**fields)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@given(NOTES)
def test_a_note_reads_back_as_it_was_written(written: Note) -> None:
    assert decode_note(encode_note(written)) == written


@given(st.lists(NOTES, max_size=8, unique_by=lambda kept: (kept.user_id, kept.session_id, kept.id)))
def test_no_two_notes_share_a_key(kept: list[Note]) -> None:
    """Ids are the users' own: the same id of two users is two notes."""
    assert len({note_key(one) for one in kept}) == len(kept)


def test_a_sessions_notes_are_read_oldest_first(notes: Notes) -> None:
    """In the order of their time, not of their coming; those of the same moment by id."""
    for kept in (note(1, at=9), note(3, at=5), note(2, at=5), note(4, session="other")):
        notes.keep(0, kept)
    assert [kept.id.int for kept in notes.of_session(0, "u", "s")] == [2, 3, 1]


def test_nothing_is_found_where_nothing_is_kept(notes: Notes) -> None:
    assert notes.of_session(0, "u", "s") == []
    assert notes.of_user(0, "u") == []
    assert notes.named(0, "u", uuid.UUID(int=1)) is None


def test_a_users_notes_are_those_of_all_sessions_and_nobody_elses(notes: Notes) -> None:
    for kept in (note(1), note(2, session="t"), note(1, user="v")):
        notes.keep(0, kept)
    notes.keep(1, note(3))
    assert {kept.id.int for kept in notes.of_user(0, "u")} == {1, 2}
    assert notes.of_session(0, "v", "s") == [note(1, user="v")]


def test_a_note_is_found_by_its_own_id_and_by_its_events(notes: Notes) -> None:
    notes.keep(0, note(1))
    assert notes.named(0, "u", note(1).id) == notes.named(0, "u", note(1).event_id) == note(1)
    assert notes.named(0, "v", note(1).id) is None
    assert notes.named(1, "u", note(1).id) is None


def test_a_new_value_takes_the_place_of_the_old(notes: Notes) -> None:
    notes.keep(0, note(1))
    notes.keep(0, note(1, promoted=True))
    assert notes.of_session(0, "u", "s") == [note(1, promoted=True)]
    assert notes.named(0, "u", note(1).event_id) == note(1, promoted=True)
    assert len(notes.drain()) == 1


def test_a_dropped_note_is_a_tombstone_and_is_not_found(notes: Notes) -> None:
    for number in (1, 2):
        notes.keep(0, note(number))
    notes.of_session(0, "u", "s")
    notes.drain()
    notes.drop(0, note(1))
    assert notes.drain() == [Change(0, note_key(note(1)), None)]
    assert notes.of_session(0, "u", "s") == notes.of_user(0, "u") == [note(2)]
    assert notes.named(0, "u", note(1).event_id) is None


def test_dropping_what_is_not_there_does_nothing(notes: Notes) -> None:
    notes.of_user(0, "u")
    notes.drop(0, note(1))
    assert notes.drain() == []


def test_another_worker_finds_the_same_notes(notes: Notes) -> None:
    for kept in (note(1), note(2, session="t"), note(3, user="v")):
        notes.keep(4, kept)
    notes.drop(4, note(2, session="t"))
    taken_over = Notes()
    assert taken_over.of_user(4, "u") == []
    taken_over.restore(4, [(change.key, change.value) for change in notes.drain()])
    assert taken_over.of_user(4, "u") == [note(1)]
    assert taken_over.named(4, "v", note(3).event_id) == note(3, user="v")


def test_a_partition_that_moves_away_takes_its_notes_along(notes: Notes) -> None:
    notes.keep(0, note(1))
    notes.keep(1, note(2, user="v"))
    notes.of_user(0, "u")
    notes.own(frozenset({1}))
    assert notes.of_user(0, "u") == []
    assert notes.of_user(1, "v") == [note(2, user="v")]


STEPS = st.tuples(
    st.sampled_from(["keep", "keep", "again", "drop", "restore", "undo", "own"]),
    st.integers(1, 4),
    st.sampled_from(["u", "v"]),
    st.sampled_from(["s", "t"]),
)


@given(st.lists(STEPS, max_size=40))
def test_what_is_found_is_what_the_rows_hold(steps: list[tuple[str, int, str, str]]) -> None:
    """Whatever was kept, dropped and restored in between."""
    notes = Notes()
    for step, number, user, session in steps:
        one = note(number, user=user, session=session)
        match step:
            case "keep":
                notes.keep(0, one)
            case "again":
                notes.keep(0, one._replace(event_id=uuid.UUID(int=1001), expires_at=one.expires_at + number))
            case "undo":
                notes.undo()
            case "drop":
                notes.drop(0, one)
            case "restore":
                notes.restore(0, [(note_key(one), encode_note(one))])
            case _:
                notes.own(frozenset({0}))
        held = [row for _, _, row in notes.items()]
        for who in ("u", "v"):
            mine = [row for row in held if row.user_id == who]
            assert notes.count_of(0, who) == len(mine)
            for name in (uuid.UUID(int=n + more) for n in range(1, 5) for more in (0, 1000)):
                named = [row for row in mine if name in (row.id, row.event_id)]
                assert (notes.named(0, who, name) in named) if named else notes.named(0, who, name) is None
            assert set(map(note_key, notes.of_user(0, who))) == {note_key(n) for n in held if n.user_id == who}
            for where in ("s", "t"):
                found = notes.of_session(0, who, where)
                assert {n.id for n in found} == {n.id for n in held if (n.user_id, n.session_id) == (who, where)}


def test_notes_that_are_forgotten_before_they_expire_leave_nothing() -> None:
    """Of ten thousand that came and went, a thousand moments are known at the most, and none is given as expired."""
    notes = Notes()
    kept = Note(uuid.UUID(int=1), uuid.UUID(int=1), "u", "s", "x", 50.0, 0, 5)
    notes.keep(0, kept)
    for number in range(2, 10_000):
        made = kept._replace(id=uuid.UUID(int=number), event_id=uuid.UUID(int=number), expires_at=10**15)
        assert notes.expired(4) == []
        notes.keep(0, made)
        notes.drop(0, made)
    assert notes._index is not None
    assert len(notes._index.expiries) < 1_010
    assert notes.expired(10**16) == [(0, kept)]
