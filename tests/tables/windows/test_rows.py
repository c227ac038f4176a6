"""Rows of a write-behind table: what is held, and what the changelog does not have yet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables.windows.rows import Change, Rows

KEYS = st.sampled_from([b"a", b"b", b"c"])
PARTITIONS = st.integers(0, 2)
VALUES = st.text(max_size=3)


@pytest.fixture
def rows() -> Rows[str]:
    return texts()


def texts() -> Rows[str]:
    return Rows(str.encode, bytes.decode)


def test_a_row_is_kept_by_partition_and_key(rows: Rows[str]) -> None:
    rows.put(0, b"k", "zero")
    rows.put(1, b"k", "one")
    assert (rows.get(0, b"k"), rows.get(1, b"k"), rows.get(2, b"k")) == ("zero", "one", None)
    assert (len(rows), rows.partitions()) == (2, [0, 1])


def test_each_changed_key_is_taken_once_with_its_newest_value(rows: Rows[str]) -> None:
    rows.put(0, b"k", "old")
    rows.put(0, b"k", "new")
    assert rows.drain() == [Change(0, b"k", b"new")]
    assert rows.drain() == []


def test_changes_are_taken_in_the_order_in_which_keys_first_changed(rows: Rows[str]) -> None:
    for key in (b"b", b"a", b"b"):
        rows.put(0, key, "x")
    assert [change.key for change in rows.drain()] == [b"b", b"a"]


def test_a_deleted_row_is_a_tombstone(rows: Rows[str]) -> None:
    rows.put(0, b"k", "x")
    rows.drain()
    rows.delete(0, b"k")
    assert rows.drain() == [Change(0, b"k", None)]
    assert rows.get(0, b"k") is None


def test_deleting_what_is_not_there_writes_nothing(rows: Rows[str]) -> None:
    rows.delete(0, b"k")
    assert rows.drain() == []


def test_what_is_restored_is_no_change(rows: Rows[str]) -> None:
    """The changelog has it already; a tombstone in it deletes."""
    rows.restore(0, [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", None), (b"c", None)])
    assert [(key, row) for _, key, row in rows.items()] == [(b"a", "2")]
    assert rows.drain() == []


@pytest.mark.parametrize("restored", [b"old", None])
def test_a_row_that_is_being_written_lies_behind_the_restored_ones(rows: Rows[str], restored: bytes | None) -> None:
    rows.put(0, b"k", "new")
    taken = rows.drain()
    rows.restore(0, [(b"k", restored)])
    assert rows.get(0, b"k") == "new"
    rows.written(taken)
    assert (rows.get(0, b"k"), [*rows.items()]) == ("new", [(0, b"k", "new")])
    assert rows._kept.get(0, b"k") == b"new"
    assert rows.drain() == []


def test_a_restored_row_of_a_higher_offset_stays_when_the_one_of_a_lower_is_written() -> None:
    """A worker that reads the changelog from its start would skip the latter."""
    rows = Rows(str.encode, bytes.decode, int)
    rows.put(0, b"k", "3")
    taken = rows.drain()
    rows.restore(0, [(b"k", b"4")])
    rows.written(taken)
    assert (rows.get(0, b"k"), rows._kept.get(0, b"k")) == ("4", b"4")


def test_requeued_changes_are_taken_again(rows: Rows[str]) -> None:
    rows.put(0, b"kept", "x")
    rows.put(0, b"gone", "x")
    rows.drain()
    rows.delete(0, b"gone")
    rows.requeue([Change(0, b"kept", b"x")])
    assert sorted(rows.drain()) == [Change(0, b"gone", None), Change(0, b"kept", b"x")]


def test_a_newer_value_wins_over_one_that_is_requeued(rows: Rows[str]) -> None:
    rows.put(0, b"k", "old")
    taken = rows.drain()
    rows.put(0, b"k", "new")
    rows.requeue(taken)
    assert rows.drain() == [Change(0, b"k", b"new")]


def test_a_partition_that_moves_away_takes_its_rows_and_changes_along(rows: Rows[str]) -> None:
    rows.put(0, b"k", "x")
    rows.put(1, b"k", "x")
    rows.own(frozenset({1, 2}))
    assert (rows.get(0, b"k"), rows.partitions()) == (None, [1])
    assert rows.drain() == [Change(1, b"k", b"x")]


def test_requeued_changes_after_their_partition_moved_are_dropped(rows: Rows[str]) -> None:
    """Else the next attempt would write tombstones into the changelog of the partition's new owner."""
    rows.put(0, b"k", "x")
    taken = rows.drain()
    rows.own(frozenset())
    rows.requeue(taken)
    assert rows.drain() == []


def test_requeued_changes_after_their_partition_moved_and_came_back_are_dropped(rows: Rows[str]) -> None:
    """Its changelog was read again meanwhile, and the records that made the changes are."""
    rows.put(0, b"k", "ours")
    taken = rows.drain()
    rows.own(frozenset())
    rows.restore(0, [(b"k", b"theirs")])
    rows.requeue(taken)
    assert rows.drain() == []
    rows.undo()
    assert rows.get(0, b"k") == "theirs"


def test_what_is_undone_of_a_partition_that_moved_away_does_not_come_back(rows: Rows[str]) -> None:
    rows.put(0, b"k", "x")
    rows.drain()
    rows.delete(0, b"k")
    rows.own(frozenset({1}))
    rows.undo()
    assert len(rows) == 0


def test_rows_may_be_deleted_while_they_are_read(rows: Rows[str]) -> None:
    for key in (b"a", b"b"):
        rows.put(0, key, "x")
    for partition, key, _ in rows.items():
        rows.delete(partition, key)
    assert len(rows) == 0


STEPS = st.one_of(
    st.tuples(st.just("put"), PARTITIONS, KEYS, VALUES),
    st.tuples(st.sampled_from(["delete", "take", "written", "failed"]), PARTITIONS, KEYS, st.just("")),
)


@given(st.lists(STEPS, max_size=60))
def test_whatever_fails_the_changelog_ends_up_as_a_copy_of_the_rows(steps: list[tuple[str, int, bytes, str]]) -> None:
    """Rows go on changing while an attempt to write is under way; it succeeds, or gives back what it took."""
    rows = texts()
    changelog: dict[tuple[int, bytes], bytes | None] = {}
    under_way: list[Change] = []
    for step, partition, key, value in [
        *steps,
        ("failed", 0, b"", ""),
        ("take", 0, b"", ""),
        ("written", 0, b"", ""),
    ]:
        if step == "put":
            rows.put(partition, key, value)
        elif step == "delete":
            rows.delete(partition, key)
        elif step == "take" and not under_way:
            under_way = rows.drain()
        elif step == "written":
            changelog |= {(change.partition, change.key): change.value for change in under_way}
            under_way = []
        elif step == "failed":
            rows.requeue(under_way)
            under_way = []
    held = {(partition, key): row.encode() for partition, key, row in rows.items()}
    assert {place: value for place, value in changelog.items() if value is not None} == held


@given(st.lists(STEPS, max_size=30), st.lists(STEPS, max_size=30))
def test_undone_rows_are_as_they_were_when_changes_were_last_taken(
    before: list[tuple[str, int, bytes, str]], after: list[tuple[str, int, bytes, str]]
) -> None:
    rows = texts()
    change(rows, before)
    rows.drain()
    taken = sorted(rows.items())
    change(rows, after)
    rows.undo()
    assert (sorted(rows.items()), rows.drain()) == (taken, [])


def change(rows: Rows[str], steps: list[tuple[str, int, bytes, str]]) -> None:
    for step, partition, key, value in steps:
        if step == "put":
            rows.put(partition, key, value)
        elif step == "delete":
            rows.delete(partition, key)


@given(st.lists(st.tuples(PARTITIONS, KEYS, st.one_of(st.none(), VALUES))))
def test_rows_come_back_from_their_changelog(changes: list[tuple[int, bytes, str | None]]) -> None:
    """Written after every single change, or only the newest values at the end: the same rows are restored."""
    live, eager, lazy = texts(), texts(), texts()
    for partition, key, value in changes:
        if value is None:
            live.delete(partition, key)
        else:
            live.put(partition, key, value)
        eager.restore(partition, [(key, None if value is None else value.encode())])
    for change in live.drain():
        lazy.restore(change.partition, [(change.key, change.value)])
    assert sorted(live.items()) == sorted(eager.items()) == sorted(lazy.items())
