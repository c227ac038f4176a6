"""What is not among the known ids is certainly new; what is, is looked up, and no wrong answer comes of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import Touch
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.catalog.known_ids import KnownIds, hashes_of, hashes_of_bytes, hashes_of_names
from tables.memories.shard import Shard
from tests.support.examples import examples
from tests.support.making import START, axis, promotion


@examples(100)
@given(st.lists(st.lists(st.integers(1, 2**64 - 1) | st.integers(1, 40).map(lambda n: n << 32), max_size=60)))
def test_it_holds_what_was_added_and_nothing_else(parts: list[list[int]]) -> None:
    """Whatever shares a slot, however often the table has grown."""
    known, added = KnownIds(), set[int]()
    for part in parts:
        hashes = np.array(part, np.uint64)
        assert known.may_hold(hashes).tolist() == [one in added for one in part]
        known.add(hashes)
        added |= set(part)
        assert len(known) == len(added)
    assert known.may_hold(np.array(sorted(added), np.uint64)).all()
    assert not known.may_hold(np.array([one for one in range(1, 50) if one not in added], np.uint64)).any()


def test_it_grows_before_two_thirds_are_taken() -> None:
    """By a quarter: two ids take 24 to 30 bytes, in one go or in many."""
    known = KnownIds()
    for start in range(0, 20_000, 500):
        known.add(hashes_of([uuid.UUID(int=n) for n in range(start, start + 500)]))
        assert 8 * len(known) <= known.nbytes * 2 / 3
        assert known.nbytes <= max(15 * len(known), 8 * 1_024)
    at_once = KnownIds()
    at_once.add(hashes_of([uuid.UUID(int=n) for n in range(20_000)]))
    assert 12 * len(at_once) <= at_once.nbytes <= 15 * len(at_once)


def test_what_has_no_room_at_the_end_goes_on_at_the_beginning() -> None:
    """In one go and one by one: the highest hashes of all have the last place as theirs."""
    highest = np.arange(2**64 - 900, 2**64, dtype=np.uint64)
    at_once, one_by_one = KnownIds(), KnownIds()
    at_once.add(highest)
    for start in range(0, 900, 9):
        one_by_one.add(highest[start : start + 9])
    for known in (at_once, one_by_one):
        assert known.may_hold(highest).all()
        assert not known.may_hold(highest - np.uint64(900)).any()
        assert len(known) == 900


def test_a_table_is_filled_by_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    """`np.unique` takes two seconds for the ids of a million memories, at each opening and each growth."""

    def unique(*_: object, **__: object) -> None:
        raise AssertionError("np.unique")

    monkeypatch.setattr(np, "unique", unique)
    hashes = hashes_of([uuid.UUID(int=n) for n in range(5_000)])
    known = KnownIds()
    known.add(np.concatenate([hashes, hashes[:1_000]]))
    known.add(hashes)
    assert len(known) == 5_000


def test_ids_that_differ_in_one_half_have_different_hashes() -> None:
    """Ids of a service may count up, or have the same end."""
    counting = [uuid.UUID(int=n) for n in range(1000)]
    with_one_end = [uuid.UUID(int=n << 64) for n in range(1, 1000)]
    assert len(set(hashes_of([*counting, *with_one_end]).tolist())) == 1999


def test_bytes_of_ids_have_the_ids_hashes() -> None:
    ids = [uuid.uuid4() for _ in range(9)]
    assert hashes_of_bytes(b"".join(one.bytes for one in ids)).tolist() == hashes_of(ids).tolist()


def test_no_ids_have_no_hashes() -> None:
    known = KnownIds()
    known.add(hashes_of([]))
    assert (len(known), known.may_hold(hashes_of_names([])).tolist()) == (0, [])


Open = Callable[[], Shard]


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Open]:
    opened: list[Shard] = []

    def shard() -> Shard:
        if opened:
            opened.pop().close()
        opened.append(Shard(0, tmp_path / "0", "toy", 8, LongTermSettings(), LifecycleSettings()))
        return opened[0]

    yield shard
    opened.pop().close()


def test_a_hash_that_another_id_has_as_well_changes_nothing(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all ids had the same hash: each of them is looked up, and found to be new."""
    for name in ("hashes_of", "hashes_of_names"):
        monkeypatch.setattr(f"tables.memories.catalog.ids.{name}", lambda ids: np.ones(len(list(ids)), np.uint64))
    shard = reopen()
    for place in range(3):
        said = promotion(f"text {place}", str(place))
        assert shard.apply([said], {said.event_id: axis(place)}, START).effects() == {"new": 1}
        assert shard.apply([said], {said.event_id: axis(place)}, START).effects() == {"repeated": 1}


def test_a_reopened_shard_knows_the_ids_that_it_holds(reopen: Open) -> None:
    """Events, memories, near-copies that went into another."""
    first, copy = promotion("text", "a"), promotion("Text!", "b")
    vectors = {first.event_id: axis(0), copy.event_id: axis(0)}
    assert reopen().apply([first, copy], vectors, START).effects() == {"new": 1, "merged": 1}
    shard = reopen()
    assert shard.apply([first, copy], vectors, START).effects() == {"repeated": 2}
    touch = Touch(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_ids=[copy.memory_id])
    assert shard.apply([touch], {}, START).effects() == {"touched": 1}


def test_a_new_id_asks_no_statement(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of new promotions, no table is asked whether it has their events, memories, near-copies or tombstones."""
    shard = reopen()
    said = [promotion(f"text {place}", str(place)) for place in range(3)]
    asked: list[str] = []

    class Told:
        """A connection that tells what it is asked."""

        def __init__(self, db: Any) -> None:
            self._db = db

        def __getattr__(self, name: str) -> Any:
            return getattr(self._db, name)

        def execute(self, sql: str | duckdb.Statement, *given: Any) -> Any:
            asked.append(sql if isinstance(sql, str) else sql.query)
            return self._db.execute(sql, *given)

    catalog = shard._catalog
    for part in (catalog, catalog.archive, catalog.history):
        monkeypatch.setattr(part, "_db", Told(part._db))
    shard.apply(said, {one.event_id: axis(place) for place, one in enumerate(said)}, START)
    assert not [sql for sql in asked if sql.lstrip().startswith("SELECT")]
    assert any(sql.lstrip().startswith("INSERT") for sql in asked)
