"""What was asked for last is kept within so many bytes."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from schemas.memories import Memory
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.shard import Shard
from tables.runs import Places
from tables.search.held import bytes_of
from tables.search.recent import Recent
from tables.search.search_rows import SearchRows
from tests.support.making import START, axis, promotion


def test_the_least_recently_asked_for_leaves_first() -> None:
    recent = Recent(30)
    for key in "abc":
        recent.put(key, key.upper(), 10)
    recent.get("a")
    recent.put("d", "D", 10)
    assert [recent.get(key) for key in "abcd"] == ["A", None, "C", "D"]


def test_a_large_value_takes_the_place_of_several() -> None:
    recent = Recent(30)
    for key in "abc":
        recent.put(key, key, 10)
    recent.put("d", "d", 15)
    assert [recent.get(key) for key in "abcd"] == [None, None, "c", "d"]
    assert recent.held == 25


def test_what_is_too_large_alone_takes_nobodys_place() -> None:
    recent = Recent(30)
    recent.put("a", "a", 10)
    recent.put("b", "b", 31)
    assert (recent.get("a"), recent.get("b")) == ("a", None)


def test_another_value_under_a_key_is_counted_once() -> None:
    recent = Recent(30)
    recent.put("a", 1, 10)
    recent.put("a", 2, 20)
    assert (recent.get("a"), recent.held) == (2, 20)
    recent.put("a", 3, 40)  # the former one is not true any more
    assert (recent.get("a"), recent.held) == (None, 0)


def test_an_owner_takes_its_values_away() -> None:
    recent, mine, yours = Recent(), object(), object()
    recent.put((mine, "u"), 1, 10)
    recent.put((yours, "u"), 2, 10)
    recent.drop_all(mine)
    assert (recent.get((mine, "u")), recent.get((yours, "u")), recent.held) == (None, 2, 10)


def test_users_share_one_bound_whichever_shard_they_are_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest stay: a user who was just asked about is not read again."""
    reads, memories, place_bytes = list[str](), SearchRows.memories, 8

    def read(rows: SearchRows, places: Places) -> list[Memory]:
        found = memories(rows, places)
        reads.extend(memory.user_id for memory in found)
        return found

    def opened(name: str, recent: Recent) -> Shard:
        shard = Shard(0, tmp_path / name, "toy", 8, LongTermSettings(), LifecycleSettings(), recent)
        stack.callback(shard.close)
        told = [promotion("1", "a", user=user) for user in "abc"]
        shard.apply(told, {event.event_id: axis(1) for event in told}, START)
        return shard

    with ExitStack() as stack:
        alone = opened("alone", Recent())
        recent = Recent(2 * (bytes_of(alone.memories_of("a")) + place_bytes))
        one, other = opened("one", recent), opened("other", recent)
        monkeypatch.setattr(SearchRows, "memories", read)
        for shard, user in ((one, "a"), (other, "b"), (one, "c"), (one, "c"), (other, "b"), (one, "a")):
            assert len(shard.memories_of(user)) == 1
        assert reads == ["a", "b", "c", "a"]
    assert recent.held == 0


def test_threads_leave_the_count_right() -> None:
    recent = Recent(200)

    def work(name: int) -> None:
        for number in range(500):
            recent.put((name, number % 7), number, number % 50)
            recent.get((name, 3))
            recent.drop((name, number % 5))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recent.held == sum(size for _, size in recent._values.values()) <= 200
