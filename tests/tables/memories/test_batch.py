"""What commands do to a shard's memories."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import (
    Archive,
    Edit,
    Forget,
    ForgetUser,
    Link,
    LongTermEvent,
    Pin,
    Promotion,
    Remember,
    Remove,
    Restore,
    Supersede,
    Touch,
    Unpin,
)
from schemas.lifecycle import DAY_MS, score_of
from schemas.memories import Memory, State, shown_score
from schemas.settings import LifecycleSettings, LongTermSettings
from schemas.times import iso
from tables.database.migrations import statement
from tables.memories import overflow
from tables.memories.editing import merge_patch
from tables.memories.overflow import GROUP, extract, groups
from tables.memories.pinning import is_request
from tables.memories.shard import Shard
from tests.support.examples import examples
from tests.support.making import START, axis, leaning, promotion
from tests.tables.commands import event

Make = Callable[..., Shard]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Shard] = []

    def shard(limit: int = 0, name: str = "0") -> Shard:
        settings = LongTermSettings(max_memories_per_user=limit)
        made.append(Shard(0, tmp_path / name, "toy", 8, settings, LifecycleSettings()))
        return made[-1]

    yield shard
    for one in made:
        one.close()


@pytest.fixture
def shard(make: Make) -> Shard:
    return make()


def apply(shard: Shard, *events: LongTermEvent, place: int | None = None) -> dict[str, int]:
    """Apply; a text's last character is its axis, unless a place is given for all. What it came to."""
    vectors = {}
    for one in events:
        if isinstance(one, Promotion | Remember | Edit) and one.text is not None:
            vectors[one.event_id] = axis(int(one.text[-1]) if place is None else place)
    return shard.apply(events, vectors, START).effects()


def held(shard: Shard, user: str = "u") -> dict[uuid.UUID, Memory]:
    return {memory.id: memory for memory in shard.memories_of(user)}


def past(shard: Shard, memory_id: uuid.UUID) -> list[str]:
    return [done.event for done in shard.history.of("u", memory_id)]


def moves(shard: Shard) -> list[tuple[str, str, str]]:
    return [(one.from_, one.to, one.reason) for one in shard.ageing.unpublished()]


def cosine(shard: Shard, memory: Memory, place: int) -> float:
    return float(shard.similarities(memory.user_id, axis(place), [memory])[0])


def test_an_edited_text_has_its_own_vector_and_keeps_all_else(shard: Shard) -> None:
    kept = promotion("text 1", "a")
    apply(shard, kept, event(Touch, memory_ids=[kept.memory_id]))
    before = held(shard)[kept.memory_id]
    assert apply(shard, event(Edit, memory_id=kept.memory_id, text="text 2")) == {"edited": 1}
    after = held(shard)[kept.memory_id]
    assert replace(after, seq=before.seq, text="text 1") == before
    assert after.seq > before.seq
    assert (cosine(shard, after, 1), cosine(shard, after, 2)) == (0, 1)
    assert [done.details["before"] for done in shard.history.of("u", kept.memory_id)] == [{"text": "text 1"}]


def test_an_edit_merges_metadata_and_leaves_what_is_siltstones(shard: Shard) -> None:
    kept = promotion("text 1", "a").model_copy(update={"metadata": {"a": {"b": 1, "c": 2}, "d": 3}})
    apply(shard, kept)
    patch = {"a": {"b": None, "e": 4}, "d": None, "promotion": None, "transitions": [], "speakers": ["Eve"]}
    apply(shard, event(Edit, memory_id=kept.memory_id, metadata=patch))
    meta = held(shard)[kept.memory_id].meta
    assert {key: meta.get(key) for key in ("a", "d", "speakers")} == {
        "a": {"c": 2, "e": 4},
        "d": None,
        "speakers": None,
    }


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_metadata_is_merged_as_rfc_7396_says(target: Any, patch: Any, merged: Any) -> None:
    assert merge_patch(target, patch) == merged


def test_a_replaced_memory_is_not_current_until_its_successor_is_forgotten(shard: Shard) -> None:
    old, new = promotion("text 1", "a"), promotion("text 2", "b")
    apply(shard, old, new, event(Supersede, memory_id=old.memory_id, by=new.memory_id))
    assert [memory.current for memory in held(shard).values()] == [False, True]
    assert (past(shard, old.memory_id), past(shard, new.memory_id)) == (["superseded"], ["supersedes"])
    apply(shard, event(Forget, memory_id=new.memory_id))
    assert [memory.current for memory in held(shard).values()] == [True]


def test_nothing_replaces_itself_in_a_circle(shard: Shard) -> None:
    said = [promotion(f"text {n}", str(n)) for n in range(3)]
    ids = [one.memory_id for one in said]
    apply(shard, *said, *(event(Supersede, memory_id=ids[n], by=ids[(n + 1) % 3]) for n in range(3)))
    assert [held(shard)[one].superseded_by for one in ids] == [None, ids[2], ids[0]]
    assert apply(shard, event(Supersede, memory_id=ids[0], by=ids[0])) == {}


def test_what_was_replaced_is_said_anew_as_a_memory_of_its_own(shard: Shard) -> None:
    """Merged into what does not count any more, it would be lost."""
    old, new = promotion("text 1", "a"), promotion("text 2", "b")
    apply(shard, old, new, event(Supersede, memory_id=old.memory_id, by=new.memory_id))
    assert apply(shard, promotion("text 1", "c")) == {"new": 1}


def test_a_memory_does_not_go_into_the_one_that_it_replaces(shard: Shard) -> None:
    """However near their texts are: one word may be the news."""
    old = promotion("text 1", "a")
    apply(shard, old)
    new = event(Remember, text="text 1", supersedes=[old.memory_id])
    assert apply(shard, new) == {"new": 1, "superseded": 1}
    assert held(shard)[old.memory_id].superseded_by == new.event_id


@pytest.mark.slow
def test_a_near_copy_lends_its_id(shard: Shard) -> None:
    """Whoever asked for it can name it, and what is forgotten by its id is forgotten."""
    first, copy, other = promotion("text 1", "a"), promotion("text 1", "b"), promotion("text 2", "c")
    apply(shard, first, copy, other)
    assert apply(shard, copy.model_copy(update={"event_id": uuid.uuid4()})) == {"repeated": 1}
    apply(shard, event(Pin, memory_id=copy.memory_id))
    assert held(shard)[first.memory_id].pinned
    assert past(shard, first.memory_id) == ["merged", "pinned"]
    assert apply(shard, event(Link, source_id=first.memory_id, target_id=copy.memory_id)) == {}
    apply(shard, event(Link, source_id=copy.memory_id, target_id=other.memory_id, weight=0.5))
    (link,) = shard.links.of("u", first.memory_id)
    assert (link.source_id, link.weight) == (first.memory_id, 0.5)
    apply(shard, event(Forget, memory_id=copy.memory_id))
    assert list(held(shard)) == [other.memory_id]
    again = [one.model_copy(update={"event_id": uuid.uuid4()}) for one in (first, copy)]
    assert apply(shard, *again) == {"forgotten": 2}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("bees in Oslo: 45681", "bees in Oslo: 45257"),
        ("I eat shellfish", "I don't eat shellfish"),
        ("我吃海鲜", "我不吃海鲜"),
        ("Olga beats Petra", "Petra beats Olga"),
        ("row " * 400 + "north", "row " * 400 + "south"),
        ("🐢🐢🐢", "🍉🍉🍉"),
    ],
)
def test_what_says_something_else_is_another_memory_whatever_its_vector(shard: Shard, one: str, other: str) -> None:
    """Stored or of the same batch; another form of either is merged with the one that it repeats."""
    assert apply(shard, promotion(one, "a"), promotion(other, "b"), place=1) == {"new": 2}
    assert apply(shard, promotion(other, "c", user="v"), place=1) == {"new": 1}
    assert apply(shard, promotion(one, "d", user="v"), place=1) == {"new": 1}
    assert apply(shard, promotion(f"{other}.", "e"), promotion(f"User: {one}", "f"), place=1) == {"merged": 2}
    assert {memory.text: memory.message_ids for memory in shard.memories_of("u")} == {
        f"User: {one}": ("a", "f"),
        f"{other}.": ("b", "e"),
    }


def test_an_archived_memory_is_in_the_archive_alone(shard: Shard) -> None:
    kept, other = promotion("text 1", "a"), promotion("text 2", "b")
    apply(shard, kept, other, event(Link, source_id=kept.memory_id, target_id=other.memory_id))
    assert apply(shard, event(Archive, at=START + DAY_MS, memory_id=kept.memory_id)) == {"archived": 1}
    assert list(held(shard)) == [other.memory_id]
    (archived,) = shard.archive.listed("u")
    assert (archived.memory.id, archived.at, archived.reason) == (kept.memory_id, START + DAY_MS, "manual")
    assert archived.memory.meta["transitions"] == [
        {"at": iso(START + DAY_MS), "from": "active", "to": "archived", "score": 80.0}
    ]
    assert shard.archive_rows.vectors(shard.archive_rows.of_user("u")).tolist() == [axis(1).tolist()]
    assert shard.links.of("u", other.memory_id) == []
    assert shard.in_step()
    assert apply(shard, event(Touch, memory_ids=[kept.memory_id])) == {"unknown": 1}
    assert apply(shard, kept.model_copy(update={"event_id": uuid.uuid4()})) == {"repeated": 1}
    assert moves(shard) == [("active", "archived", "manual")]


def test_an_event_of_several_accesses_is_as_good_as_one_for_each(make: Make) -> None:
    """A near-copy's id is the memory's: of both names the one that says more counts."""
    one, other, copy = promotion("text 0", "a", importance=80), promotion("text 1", "b"), promotion("text 0", "c")
    ids = [one.memory_id, other.memory_id]
    together, apart = make(name="together"), make(name="apart")
    for shard in (together, apart):
        apply(shard, one, other, copy)
    assert apply(together, event(Touch, at=START + 9, memory_ids=[*ids, copy.memory_id], times=[3, 1, 2])) == {
        "touched": 4
    }
    apply(apart, event(Touch, at=START + 9, memory_ids=ids), *(event(Touch, memory_ids=ids[:1]) for _ in range(2)))
    assert held(together) == held(apart)
    assert held(together)[one.memory_id].access_count == 3


def test_a_restored_memory_is_as_it_was_and_accessed_now(shard: Shard) -> None:
    kept, other = promotion("text 1", "a"), promotion("text 2", "b")
    apply(shard, kept, other, event(Link, source_id=kept.memory_id, target_id=other.memory_id))
    before = held(shard)[kept.memory_id]
    later = START + 100 * DAY_MS
    apply(shard, event(Archive, at=START + DAY_MS, memory_id=kept.memory_id))
    assert apply(shard, event(Restore, at=later, memory_id=kept.memory_id)) == {"restored": 1}
    after = held(shard)[kept.memory_id]
    assert after == replace(before, seq=after.seq, last_accessed=later, meta=after.meta)
    assert [entry["to"] for entry in after.meta["transitions"]] == ["archived", "active"]
    assert cosine(shard, after, 1) == 1
    assert shard.archive.listed("u") == []
    assert [link.target_id for link in shard.links.of("u", kept.memory_id)] == [other.memory_id]
    assert shard.in_step()
    assert moves(shard) == [("active", "archived", "manual"), ("archived", "active", "restore")]


def test_a_cleanup_that_was_overtaken_spares_the_memory(shard: Shard) -> None:
    """Decided on an older access than the last one, or on what has been pinned since."""
    touched, pinned, left = (promotion(f"text {n}", str(n)) for n in range(3))
    apply(shard, touched, pinned, left)
    apply(
        shard,
        event(Touch, at=START + 5, memory_ids=[touched.memory_id]),
        event(Pin, memory_id=pinned.memory_id),
    )
    cleanup = [event(Archive, memory_id=one.memory_id, last_accessed=START) for one in (touched, pinned, left)]
    assert apply(shard, *cleanup) == {"archived": 1, "spared": 2}
    assert list(held(shard)) == [touched.memory_id, pinned.memory_id]


def test_only_what_is_archived_can_be_removed(shard: Shard) -> None:
    kept = promotion("text 1", "a")
    apply(shard, kept)
    assert apply(shard, event(Remove, memory_id=kept.memory_id)) == {"unknown": 1}
    apply(shard, event(Archive, memory_id=kept.memory_id), event(Remove, memory_id=kept.memory_id))
    assert (held(shard), shard.archive.listed("u")) == ({}, [])
    assert moves(shard) == [("active", "archived", "manual"), ("archived", "removed", "manual")]


@pytest.mark.parametrize("command", [Archive, Restore, Remove, Pin, Forget])
def test_what_is_another_users_is_not_there(shard: Shard, command: type[Any]) -> None:
    kept, archived = promotion("text 1", "a"), promotion("text 2", "b")
    apply(shard, kept, archived, event(Archive, memory_id=archived.memory_id))
    for memory_id in (kept.memory_id, archived.memory_id):
        assert apply(shard, event(command, "v", memory_id=memory_id)) == {"unknown": 1}
    assert list(held(shard)) == [kept.memory_id]
    assert not held(shard)[kept.memory_id].pinned
    assert [one.memory.id for one in shard.archive.listed("u")] == [archived.memory_id]


def test_forgetting_reaches_the_archive(shard: Shard) -> None:
    one, two = promotion("text 1", "a"), promotion("text 2", "b")
    apply(shard, one, two, *(event(Archive, memory_id=kept.memory_id) for kept in (one, two)))
    apply(shard, event(Forget, memory_id=one.memory_id))
    assert [archived.memory.id for archived in shard.archive.listed("u")] == [two.memory_id]
    apply(shard, event(ForgetUser, at=START))
    assert shard.archive.listed("u") == []


def test_the_history_of_what_is_forgotten_is_gone(shard: Shard) -> None:
    kept = promotion("text 1", "a")
    apply(shard, kept, event(Pin, memory_id=kept.memory_id), event(Edit, memory_id=kept.memory_id, text="text 2"))
    apply(shard, event(Forget, memory_id=kept.memory_id))
    assert past(shard, kept.memory_id) == ["transition"]
    assert "text" not in repr(shard.history.of("u", kept.memory_id))


def many(count: int, start: int = 0) -> list[Promotion]:
    return [promotion(f"text number {n}: {n % 8}", f"m{n}", at=START + n, importance=80) for n in range(start, count)]


def spread(shard: Shard, said: list[Promotion]) -> dict[str, int]:
    """Apply texts none of which is a near-copy of another."""
    vectors = {one.event_id: leaning(n % 4, 4 + n // 4 % 4, 0.9 - 0.1 * (n // 16)) for n, one in enumerate(said)}
    return shard.apply(said, vectors, START).effects()


def test_too_many_memories_are_summed_up(make: Make) -> None:
    shard, said = make(limit=10), many(11)
    assert spread(shard, said) == {"new": 11, "summarized": 1}
    memories = held(shard)
    (whole,) = (memory for memory in memories.values() if memory.kind == "summary")
    members = [memory for memory in memories.values() if memory.summarized_by == whole.id]
    assert whole.summary_of == tuple(memory.id for memory in sorted(members, key=lambda memory: memory.created_at))
    assert 2 <= len(members) <= GROUP
    assert members[0].id == said[0].memory_id  # of equal scores the oldest
    assert sum(memory.current for memory in memories.values()) <= 10
    assert all(f"2026-01-01 {memory.text}" in whole.text for memory in members)
    assert set(whole.message_ids) == {i for memory in members for i in memory.message_ids}
    assert (whole.state, whole.importance) == (State.ACTIVE, 80)
    assert past(shard, members[0].id) == ["summarized"]
    assert shard.in_step()


def test_a_pinned_memory_is_not_summed_up(make: Make) -> None:
    shard, said = make(limit=10), many(11)
    spread(shard, said[:10])
    apply(shard, event(Pin, memory_id=said[0].memory_id))
    vectors = {said[10].event_id: leaning(2, 6, 0.9)}
    assert shard.apply([said[10]], vectors, START).effects() == {"new": 1, "summarized": 1}
    assert held(shard)[said[0].memory_id].current


@pytest.mark.slow
def test_summaries_are_the_same_however_batches_are_cut(make: Make) -> None:
    whole, cut, said = make(10, "whole"), make(10, "cut"), many(40)
    vectors = {one.event_id: leaning(n % 4, 4 + n // 4 % 4, 0.9 - 0.1 * (n // 16)) for n, one in enumerate(said)}
    whole.apply(said, vectors, START)
    for one in said:
        cut.apply([one], vectors, START)
    assert whole.memories_of("u") == cut.memories_of("u")
    assert sum(memory.kind == "summary" for memory in whole.memories_of("u")) > 3


def test_forgetting_takes_the_summary_that_holds_the_words_along(make: Make) -> None:
    """What else it stood for holds again."""
    shard, said = make(limit=10), many(11)
    spread(shard, said)
    (whole,) = (memory for memory in held(shard).values() if memory.kind == "summary")
    archived = whole.summary_of[1]
    apply(shard, event(Archive, memory_id=archived), event(Forget, memory_id=whole.summary_of[0]))
    memories = held(shard)
    assert whole.id not in memories
    assert whole.summary_of[0] not in memories
    assert all(memory.current for memory in memories.values())
    assert [one.memory.summarized_by for one in shard.archive.listed("u")] == [None]


def test_groups_are_of_what_is_similar() -> None:
    """What resembles nothing stays where it is."""
    vectors = np.stack([axis(0), axis(1), leaning(0, 2, 0.8), leaning(1, 2, 0.8), axis(3), leaning(0, 3, 0.7)])
    assert groups(vectors, 0.4, 1, 10) == [[0, 2, 5], [1, 3]]
    assert groups(vectors, 0.4, 1, 2) == [[0, 2, 5]]
    rows = np.concatenate(
        [np.stack([leaning(0, 2 + n % 6, 0.9 - n / 100) for n in range(8)]), np.stack([axis(1)] * 9)]
    )
    assert groups(rows, 0.4, 1, 100) == [list(range(8)), list(range(8, 16))]
    assert groups(rows[:1], 0.4, 1, 1) == []


def test_where_nothing_is_similar_the_nearest_two_give_way_and_no_more() -> None:
    vectors = np.stack([axis(0), axis(1), axis(2), leaning(1, 3, 0.3), axis(4)])
    assert groups(vectors, 0.4, 1, 3) == [[1, 3]]
    assert groups(vectors, 0.4, 2, 2) == [[1, 3], [0, 2]]


def test_a_summary_is_born_active_whatever_it_stands_for(make: Make) -> None:
    """Its members had cooled, and were of little importance."""
    shard = make(limit=3)
    said = [promotion(f"text {n}", f"m{n}", at=START + n * 40 * DAY_MS, importance=71) for n in range(4)]
    spread(shard, said)
    (whole,) = (memory for memory in held(shard).values() if memory.kind == "summary")
    assert score_of(held(shard)[whole.summary_of[0]], whole.created_at, LifecycleSettings()) < 70
    assert score_of(whole, whole.created_at, LifecycleSettings()) >= 70
    members = [held(shard)[one] for one in whole.summary_of]
    assert overflow.summary(members, 9, START, 90.0).importance == 90.0


def test_a_summary_of_summaries_keeps_each_line_once(make: Make) -> None:
    shard, said = make(limit=10), many(11)
    spread(shard, said)
    (whole,) = (memory for memory in held(shard).values() if memory.kind == "summary")
    first = held(shard)[whole.summary_of[0]]
    assert extract([whole, first]).splitlines() == whole.text.splitlines()


def test_a_text_after_an_edit_is_compared_with_what_the_edit_says(shard: Shard) -> None:
    """In one call: it is a near-copy of the new text, and none of the old one."""
    kept = promotion("text 1", "a")
    apply(shard, kept)
    told: list[LongTermEvent] = [
        event(Edit, memory_id=kept.memory_id, text="text 2"),
        promotion("text 2", "b"),
        promotion("text 1", "c"),
    ]
    assert apply(shard, *told) == {"edited": 1, "merged": 1, "new": 1}


def test_a_text_after_a_restoration_is_compared_with_what_came_back(shard: Shard) -> None:
    kept = promotion("text 1", "a")
    apply(shard, kept, event(Archive, memory_id=kept.memory_id))
    told: list[LongTermEvent] = [event(Restore, memory_id=kept.memory_id), promotion("text 1", "b")]
    assert apply(shard, *told) == {"restored": 1, "merged": 1}


@pytest.mark.slow
def test_a_users_memory_is_its_own_whatever_ids_others_give(shard: Shard) -> None:
    """The same id of a memory, of an event, or of both: each is in, once, and each has its own history."""
    identity, event_id = uuid.uuid4(), uuid.uuid4()
    same = {"event_id": event_id, "timestamp": START, "memory_id": identity}
    mine = Remember.model_validate({**same, "user_id": "u", "text": "mine 1"})
    theirs = Remember.model_validate({**same, "user_id": "v", "text": "theirs 1"})
    for _ in range(2):
        apply(shard, mine)
        apply(shard, theirs)
    apply(shard, event(Edit, "v", memory_id=identity, text="edited 2"), event(Pin, "u", memory_id=identity))
    assert [(one.id, one.text, one.pinned) for one in shard.memories_of("u")] == [(identity, "mine 1", True)]
    assert [(one.id, one.text, one.pinned) for one in shard.memories_of("v")] == [(identity, "edited 2", False)]
    assert [[done.event for done in shard.history.of(user, identity)] for user in "uv"] == [["pinned"], ["edited"]]
    apply(shard, event(Archive, "v", memory_id=identity))
    apply(shard, event(Forget, "u", memory_id=identity))
    assert [len(shard.memories_of(user)) + len(shard.archive.listed(user)) for user in "uv"] == [0, 1]
    assert apply(shard, event(Restore, "v", memory_id=identity)) == {"restored": 1}
    assert shard.forgotten([("u", identity, START), ("v", identity, START)]) == [True, False]


def test_two_users_events_of_one_id_in_one_call_keep_near_copies_apart(shard: Shard) -> None:
    event_id = uuid.uuid4()
    mine, theirs = (
        Remember(event_id=event_id, user_id=user, timestamp=START, text="text 1", memory_id=uuid.uuid4())
        for user in "uv"
    )
    assert apply(shard, mine, theirs, promotion("text 1", "c")) == {"new": 2, "merged": 1}
    assert [len(shard.memories_of(user)) for user in "uv"] == [1, 1]


def test_a_near_copys_id_is_its_users(shard: Shard) -> None:
    copy = uuid.uuid4()
    apply(shard, event(Remember, text="text 1"))
    assert apply(shard, event(Remember, text="text 1", memory_id=copy)) == {"merged": 1}
    assert apply(shard, event(Remember, "v", text="text 2", memory_id=copy)) == {"new": 1}
    assert (shard.stands_for("v", copy), shard.stands_for("u", copy) != copy) == (copy, True)
    assert [memory.id for memory in shard.memories_of("v")] == [copy]


def test_an_event_that_was_noted_before_events_had_users_is_in(shard: Shard) -> None:
    kept = promotion("text 1", "a")
    apply(shard, kept)
    shard._catalog._db.execute("UPDATE applied SET user_id = NULL")
    assert apply(shard, kept) == {"repeated": 1}


def test_a_shown_score_is_never_beyond_a_border_that_the_score_is_not(shard: Shard) -> None:
    """Half a minute after it became cold a memory is not worth 70.0: where it is noted, and in its history."""
    kept = promotion("text 1", "a", importance=80)
    apply(shard, kept)
    border = START + int((7 + 60 * math.log2(80 / 70)) * DAY_MS)
    shard.recompute(border - 30_000, LifecycleSettings())
    shard.recompute(border + 30_000, LifecycleSettings())
    (noted,) = held(shard)[kept.memory_id].meta["transitions"]
    assert (noted["to"], noted["score"]) == ("cold", 69.99)
    assert shard.history.of("u", kept.memory_id)[0].details["score"] == 69.99
    apply(shard, event(Archive, at=border + 30_000, memory_id=kept.memory_id))
    (archived,) = shard.archive.listed("u")
    assert archived.memory.meta["transitions"][-1]["score"] == 69.99


@pytest.mark.slow
@examples(200)
@given(score=st.one_of(st.floats(0, 100), st.sampled_from([70.0, 30.0, 69.995, 70.1, 69.07, 0.29, 99.99])))
def test_a_score_is_shown_in_two_decimals_on_its_side_of_every_border(score: float) -> None:
    """By Python and SQL alike; what has two decimals is shown as it is."""
    shown = shown_score(score)
    assert shown <= score < shown + 0.0101
    assert shown == round(shown, 2)
    if score == round(score, 2):
        assert shown == score
    with duckdb.connect() as db:
        db.execute(statement("lifecycle"))
        assert db.execute("SELECT shown_score(?::DOUBLE)", [score]).fetchall() == [(shown,)]


def asked_for(text: str, *ids: str, at: int = START) -> Promotion:
    return promotion(text, *ids, at=at, importance=100).model_copy(update={"pinned": True})


def test_what_a_user_asked_to_remember_is_born_pinned_and_ages_once_unpinned(shard: Shard) -> None:
    """Its event read again, or an older one without the field, changes nothing."""
    asked, other = asked_for("text 1", "a"), promotion("text 2", "b", importance=100)
    apply(shard, asked, other)
    shard.recompute(START + 999 * DAY_MS, LifecycleSettings())
    states = [held(shard)[one.memory_id].state for one in (asked, other)]
    assert states == [State.ACTIVE, State.DEPRECATED]
    apply(shard, event(Unpin, memory_id=asked.memory_id))
    shard.recompute(START + 999 * DAY_MS, LifecycleSettings())
    assert apply(shard, asked) == {"repeated": 1}
    assert (held(shard)[asked.memory_id].state, held(shard)[asked.memory_id].pinned) == (State.DEPRECATED, False)


def test_who_asks_to_remember_what_is_known_pins_it(shard: Shard) -> None:
    """Though it had been unpinned: that was before."""
    known, asked, again = promotion("text 1", "a"), asked_for("text 1", "b"), asked_for("text 1", "c")
    told: list[LongTermEvent] = [known, asked, event(Unpin, memory_id=known.memory_id), again]
    assert apply(shard, *told) == {"new": 1, "merged": 2}
    assert held(shard)[known.memory_id].pinned
    assert past(shard, known.memory_id) == ["merged", "pinned", "unpinned", "merged", "pinned"]


def test_a_request_is_no_more_than_one_when_somebody_has_pinned_it(shard: Shard) -> None:
    asked, by_hand, known = asked_for("text 1", "a"), asked_for("text 2", "b"), promotion("text 3", "c")
    apply(
        shard, asked, by_hand, known, event(Pin, memory_id=by_hand.memory_id), event(Pin, memory_id=known.memory_id)
    )
    apply(shard, asked_for("text 3", "d"))
    assert [is_request(held(shard)[one.memory_id]) for one in (asked, by_hand, known)] == [True, False, False]
    assert all(one.pinned for one in held(shard).values())
    apply(shard, event(Unpin, memory_id=asked.memory_id))
    assert not is_request(held(shard)[asked.memory_id])
