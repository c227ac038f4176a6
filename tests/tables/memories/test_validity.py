"""From when to when a memory held, and what ends it: a command, a word of its user, or a statement."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import Archive, Edit, Forget, LongTermEvent, Pin, Promotion, Remember, Remove, Supersede
from schemas.lifecycle import DAY_MS
from schemas.memories import STILL_HOLDS, VALIDITY, Memory
from schemas.settings import LifecycleSettings, LongTermSettings, Updates
from tables.memories.making import as_memory
from tables.memories.shard import Shard
from tables.memories.validity import holds_again, superseded
from tests.support.examples import examples
from tests.support.making import START, axis, promotion
from tests.tables.commands import event

Make = Callable[..., Shard]
NEVER = (None, None)


def settings() -> LongTermSettings:
    return LongTermSettings(max_memories_per_user=0)


def opened(folder: Path, updates: Updates = "rank") -> Shard:
    return Shard(0, folder, "toy", 8, settings(), LifecycleSettings(), updates=updates)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Shard] = []

    def shard(updates: Updates = "rank", name: str = "0") -> Shard:
        made.append(opened(tmp_path / name, updates))
        return made[-1]

    yield shard
    for one in made:
        one.close()


def apply(shard: Shard, *events: LongTermEvent) -> dict[str, int]:
    """Apply events. Texts of the same first letter have the same vector."""
    vectors = {
        one.event_id: axis(ord(one.text[0]) % 8)
        for one in events
        if isinstance(one, Promotion | Remember | Edit) and one.text is not None
    }
    return shard.apply(events, vectors, START).effects()


def held(shard: Shard) -> dict[uuid.UUID, Memory]:
    return {memory.id: memory for memory in shard.memories_of("u")}


def times(shard: Shard, memory_id: uuid.UUID) -> tuple[int | None, int | None]:
    memory = held(shard)[memory_id]
    return memory.valid_from, memory.valid_to


def said(text: str, day: int) -> Promotion:
    return promotion(text, f"{text}{day}", at=START + day * DAY_MS)


OLD, NEW = said("a: I have a cat", 0), said("b: I have a dog", 5)


@pytest.mark.parametrize(
    ("valid", "moments"),
    [
        (NEVER, [False, True, True, True]),
        ((None, START + 2), [False, True, False, False]),
        ((START - 5, START + 2), [True, True, False, False]),
        ((START + 2, None), [False, False, True, True]),
        ((None, START - 1), [False, False, False, False]),
    ],
)
def test_a_memory_holds_from_its_beginning_until_before_its_end(
    valid: tuple[int | None, int | None], moments: list[bool], make: Make
) -> None:
    shard = make()
    given = event(Remember, text="a memory", valid_from=valid[0], valid_to=valid[1])
    apply(shard, given)
    (memory,) = held(shard).values()
    assert (memory.valid_from, memory.valid_to) == valid
    assert [memory.held_at(START + after) for after in (-1, 0, 2, 9)] == moments


def test_what_had_ended_before_it_was_said_held_before(make: Make) -> None:
    """ "I lived in Rome until 2019", said in 2026."""
    shard = make()
    apply(shard, event(Remember, text="a memory", valid_to=START - DAY_MS))
    (memory,) = held(shard).values()
    assert [memory.held_at(START + after * DAY_MS) for after in (-900, -2, -1, 0)] == [True, True, False, False]


def test_a_superseded_memory_held_until_its_successor_did(make: Make) -> None:
    shard = make()
    apply(shard, OLD, NEW, event(Supersede, at=START + 9 * DAY_MS, memory_id=OLD.memory_id, by=NEW.memory_id))
    assert times(shard, OLD.memory_id) == (None, NEW.started_at)
    assert times(shard, NEW.memory_id) == NEVER


def test_a_successor_that_holds_from_another_time_ends_it_then(make: Make) -> None:
    shard, later = make(), START + 30 * DAY_MS
    new = event(Remember, text="b: from May on", supersedes=[OLD.memory_id], valid_from=later)
    apply(shard, OLD, new)
    assert times(shard, OLD.memory_id) == (None, later)


def test_what_had_ended_earlier_by_a_users_word_keeps_its_end(make: Make) -> None:
    shard, ended = make(), START + DAY_MS
    apply(shard, OLD, NEW, event(Edit, memory_id=OLD.memory_id, valid_to=ended))
    apply(shard, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id))
    assert times(shard, OLD.memory_id) == (None, ended)


def test_a_correction_by_an_earlier_memory_says_that_the_later_one_held_at_no_time(make: Make) -> None:
    shard = make()
    apply(shard, OLD, NEW, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id))
    apply(shard, event(Supersede, memory_id=NEW.memory_id, by=OLD.memory_id))
    wrong = held(shard)[NEW.memory_id]
    assert not any(wrong.held_at(START + day * DAY_MS) for day in range(-2, 10))
    assert times(shard, OLD.memory_id) == NEVER, "it holds again"
    apply(shard, event(Forget, memory_id=OLD.memory_id))
    assert times(shard, NEW.memory_id) == NEVER


@pytest.mark.parametrize("given", [{}, {"valid_to": START + 99 * DAY_MS}, {"valid_from": START + 50 * DAY_MS}])
@pytest.mark.parametrize("archived", [False, True])
def test_a_memory_holds_again_when_its_successor_is_forgotten(
    archived: bool, given: dict[str, Any], make: Make
) -> None:
    """As long as its user said before."""
    shard = make()
    apply(shard, OLD, NEW)
    if given:
        apply(shard, event(Edit, memory_id=OLD.memory_id, **given))
    before = held(shard)[OLD.memory_id]
    apply(shard, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id))
    assert not held(shard)[OLD.memory_id].held_at(START + 60 * DAY_MS)
    if archived:
        apply(shard, event(Archive, memory_id=OLD.memory_id))
    apply(shard, event(Forget, memory_id=NEW.memory_id))
    found = shard.archive.find("u", OLD.memory_id) if archived else held(shard)[OLD.memory_id]
    assert found is not None
    assert (found.superseded_by, found.valid_from, found.valid_to) == (None, before.valid_from, before.valid_to)
    assert found.meta.keys() - {"transitions"} == before.meta.keys()


def test_a_user_says_that_it_still_holds(make: Make) -> None:
    """One call undoes a superseding, and ends an end. The history has what was before, and it is counted."""
    shard = make()
    apply(shard, OLD, NEW, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id))
    undo = event(Edit, memory_id=OLD.memory_id, metadata={STILL_HOLDS: True})
    assert apply(shard, undo) == {"edited": 1, "reinstated": 1}
    memory = held(shard)[OLD.memory_id]
    assert (memory.current, memory.valid_to, memory.meta[STILL_HOLDS]) == (True, None, True)
    before = shard.history.of("u", OLD.memory_id)[-1].details["before"]
    assert before["superseded_by"] == str(NEW.memory_id)
    assert before["valid_to"].startswith("2026-01-06")


def test_an_end_before_the_beginning_is_refused(make: Make) -> None:
    shard = make()
    apply(shard, event(Remember, text="a memory", memory_id=uuid.UUID(int=1), valid_from=START))
    (memory,) = held(shard).values()
    assert apply(shard, event(Edit, memory_id=memory.id, valid_to=START - 1)) == {"refused": 1}
    assert times(shard, memory.id) == (START, None)
    with pytest.raises(ValueError, match="valid_to must not be before"):
        event(Remember, text="a", valid_from=START, valid_to=START - 1)
    with pytest.raises(ValueError, match="valid_to are for kind long_term"):
        event(Remember, text="a", kind="short_term", session_id="s", valid_to=START)


def test_an_item_and_what_is_superseded_take_no_time_of_validity(make: Make) -> None:
    """The end of the latter is the beginning of its successor."""
    shard, key = make(), uuid.UUID(int=7)
    apply(shard, OLD, NEW, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id))
    apply(shard, event(Remember, text="d: a value", kind="item", memory_id=key))
    for identity in (OLD.memory_id, key):
        before = held(shard)[identity]
        assert apply(shard, event(Edit, memory_id=identity, valid_to=START + 99 * DAY_MS)) == {"refused": 1}
        assert held(shard)[identity] == before


def test_a_mark_that_has_no_room_reinstates_nothing(make: Make) -> None:
    shard = make()
    apply(shard, OLD, NEW, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id))
    apply(shard, event(Edit, memory_id=OLD.memory_id, metadata={"a": "x" * 20_000}))
    undo = event(Edit, memory_id=OLD.memory_id, metadata={STILL_HOLDS: True, "b": "x" * 20_000})
    assert apply(shard, undo) == {"refused": 1}
    assert not held(shard)[OLD.memory_id].current


def test_another_beginning_of_the_successor_is_another_end(make: Make) -> None:
    shard, later = make(), START + 8 * DAY_MS
    apply(shard, OLD, NEW, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id))
    apply(shard, event(Edit, memory_id=NEW.memory_id, valid_from=later))
    assert times(shard, OLD.memory_id) == (None, later)


def test_a_summary_ends_nothing(make: Make) -> None:
    """An import supersedes memories by their summary, which says the same."""
    shard = make()
    apply(shard, OLD, NEW, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id, reason="summary"))
    assert (held(shard)[OLD.memory_id].superseded_by, times(shard, OLD.memory_id)) == (NEW.memory_id, NEVER)


def test_nobody_else_sets_what_a_user_gave(make: Make) -> None:
    """The key is ours: a message or an edit cannot set it."""
    shard, theirs = make(), {VALIDITY: {"valid_to": "x"}}
    apply(shard, event(Remember, text="a memory", memory_id=OLD.memory_id, metadata=theirs), NEW)
    apply(shard, event(Edit, memory_id=OLD.memory_id, metadata=theirs))
    apply(shard, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id), event(Forget, memory_id=NEW.memory_id))
    assert (times(shard, OLD.memory_id), held(shard)[OLD.memory_id].meta) == (NEVER, {})


def test_a_near_copy_of_what_no_longer_held_is_a_memory_of_its_own(make: Make) -> None:
    """And so is one whose time of validity is told: merged, it would be lost."""
    shard = make()
    first = event(Remember, text="a memory", valid_to=START + DAY_MS)
    apply(shard, first)
    assert apply(shard, event(Remember, text="a memory", at=START + 1)) == {"merged": 1}
    assert apply(shard, event(Remember, text="a memory", at=START + DAY_MS)) == {"new": 1}
    assert apply(shard, event(Remember, text="a memory", at=START + DAY_MS, valid_from=START)) == {"new": 1}


def test_a_near_copy_of_what_holds_only_later_is_a_memory_of_its_own(make: Make) -> None:
    shard = make()
    apply(shard, event(Remember, text="a memory", valid_from=START + 900 * DAY_MS))
    assert apply(shard, event(Remember, text="a memory")) == {"new": 1}


def test_rows_and_catalog_have_the_same_times_after_a_restart(tmp_path: Path) -> None:
    shard = opened(tmp_path)
    apply(shard, OLD, NEW, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id))
    before = held(shard)
    shard.close()
    (tmp_path / "search").rename(tmp_path / "elsewhere")
    again = opened(tmp_path)
    assert held(again) == before
    again.close()


def test_a_shard_of_an_earlier_version_knows_when_memories_were_superseded(tmp_path: Path) -> None:
    """Also of one whose successor is gone, and of one that a correction by an earlier memory replaced."""
    shard = opened(tmp_path)
    other, gone, last = (said(f"{name}: I have a {name}bird", day) for name, day in (("c", 6), ("d", 7), ("e", 8)))
    pairs = [(OLD, NEW), (NEW, other), (gone, last), (last, other)]
    apply(shard, OLD, NEW, other, gone, last)
    for older, newer in pairs:
        apply(shard, event(Supersede, at=START + 30 * DAY_MS, memory_id=older.memory_id, by=newer.memory_id))
    apply(shard, event(Archive, memory_id=NEW.memory_id), event(Archive, memory_id=last.memory_id))
    live = {**held(shard), **{one.memory.id: one.memory for one in shard.archive.listed("u")}}
    apply(shard, event(Remove, memory_id=last.memory_id))
    shard.close()
    with duckdb.connect(str(tmp_path / "catalog.duckdb")) as db:
        for table in ("memories", "archive"):
            for column in ("valid_from", "valid_to"):
                db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute("DELETE FROM migrations WHERE number > 10")
    again = opened(tmp_path)
    archived = again.archive.find("u", NEW.memory_id)
    assert archived == live[NEW.memory_id]
    kept = held(again)
    assert kept.pop(gone.memory_id).valid_to == START + 30 * DAY_MS, "when the command was"
    assert kept == {name: live[name] for name in kept}
    again.close()


# statements that supersede

BERGEN, OSLO = said("a: I live in Bergen", 0), said("b: I just moved to Oslo", 5)
PARIS = said("c: I live in Paris", 9)


def test_a_statement_supersedes_the_older_one_only_if_settings_say_so(make: Make) -> None:
    shard, ranking = make("supersede", "1"), make("rank", "2")
    assert apply(shard, BERGEN, OSLO) == {"new": 2, "superseded": 1}
    assert held(shard)[BERGEN.memory_id].superseded_by == OSLO.memory_id
    assert times(shard, BERGEN.memory_id) == (None, OSLO.started_at)
    (done,) = (one for one in shard.history.of("u", BERGEN.memory_id) if one.event == "superseded")
    assert done.details["reason"] == "update"
    assert apply(ranking, BERGEN, OSLO) == {"new": 2}


def test_an_older_statement_that_comes_late_is_superseded_by_the_newer_one(make: Make) -> None:
    shard = make("supersede")
    assert apply(shard, OSLO) == {"new": 1}
    assert apply(shard, BERGEN) == {"new": 1, "superseded": 1}
    assert held(shard)[OSLO.memory_id].current
    assert not held(shard)[BERGEN.memory_id].current


def test_statements_of_an_edit_and_of_a_near_copy_supersede(make: Make) -> None:
    shard, other = make("supersede"), said("d: I like fish", 12)
    apply(shard, BERGEN, other)
    assert apply(shard, event(Edit, at=START + 13 * DAY_MS, memory_id=other.memory_id, text="d: I live in Rome")) == {
        "edited": 1,
        "superseded": 1,
    }
    again = said("a: I live in Bergen", 20)
    assert apply(shard, again) == {"new": 1, "superseded": 1}, "what is superseded takes no near-copy"
    assert held(shard)[again.memory_id].current
    assert not held(shard)[other.memory_id].current


@pytest.mark.parametrize("by", [event(Edit, memory_id=BERGEN.memory_id, metadata={STILL_HOLDS: True}),
                                event(Pin, memory_id=BERGEN.memory_id)])  # fmt: skip
def test_no_statement_supersedes_what_its_user_holds_fast(by: LongTermEvent, make: Make) -> None:
    shard = make("supersede")
    apply(shard, BERGEN, by)
    assert apply(shard, OSLO) == {"new": 1}


@pytest.mark.parametrize(
    "validity", [{"valid_to": START + 4 * DAY_MS}, {"valid_from": START + 900 * DAY_MS}], ids=["ended", "to come"]
)
def test_a_statement_about_another_time_supersedes_nothing(validity: dict[str, int], make: Make) -> None:
    shard = make("supersede")
    new = event(Remember, "u", START + 5 * DAY_MS, text="b: I live in Rome", **validity)
    assert apply(shard, BERGEN, new) == {"new": 2}


def test_an_edited_statement_holds_from_its_edit(make: Make) -> None:
    shard, fish, edited_at = make("supersede"), said("d: I like fish", -5), START + 13 * DAY_MS
    apply(shard, fish, BERGEN)
    apply(shard, event(Edit, at=edited_at, memory_id=fish.memory_id, text="d: I live in Rome"))
    assert times(shard, BERGEN.memory_id) == (None, edited_at)


def test_a_memory_that_its_batch_archives_is_not_superseded(make: Make) -> None:
    shard = make("supersede")
    assert apply(shard, BERGEN, event(Archive, memory_id=BERGEN.memory_id), OSLO) == {"new": 2, "archived": 1}


def test_what_a_correction_replaced_supersedes_nothing(make: Make) -> None:
    """A user takes the newer statement back: then an older one that comes late is not updated by it."""
    shard = make("supersede")
    apply(shard, BERGEN, OSLO, event(Supersede, memory_id=OSLO.memory_id, by=BERGEN.memory_id))
    assert held(shard)[BERGEN.memory_id].current
    assert apply(shard, said("c: I live in Paris", -3)) == {"new": 1, "superseded": 1}
    assert held(shard)[BERGEN.memory_id].current


#: Some make two statements, so that one memory updates another one and is itself updated.
STATED = [
    BERGEN,
    said("b: I just moved to Oslo. I weigh 70 kg", 5),
    PARIS,
    said("e: I weigh 80 kg", 2),
    said("f: I live in Turin. I weigh 90 kg", 7),
]


def updated_in(folder: Path, events: Sequence[Promotion], sizes: Sequence[int]) -> dict[uuid.UUID, tuple[Any, ...]]:
    """Of each memory, what superseded it and when, after batches of these sizes."""
    shard = opened(folder, "supersede")
    rest = list(events)
    for size in sizes:
        apply(shard, *rest[:size])
        rest = rest[size:]
    found = {one.id: (one.superseded_by, one.valid_from, one.valid_to) for one in shard.memories_of("u")}
    shard.close()
    return found


@examples(60)
@given(st.permutations(STATED), st.lists(st.integers(1, 5), min_size=5, max_size=5))
def test_what_is_superseded_depends_on_neither_order_nor_batches(
    tmp_path_factory: pytest.TempPathFactory, events: Sequence[Promotion], sizes: list[int]
) -> None:
    """Each by the first one after it that states another value of the same."""
    bergen, oslo, paris, weight, turin = (one.memory_id for one in STATED)
    assert updated_in(tmp_path_factory.mktemp("shard"), events, sizes) == {
        bergen: (oslo, None, START + 5 * DAY_MS),
        oslo: (turin, None, START + 7 * DAY_MS),
        turin: (paris, None, START + 9 * DAY_MS),
        weight: (oslo, None, START + 5 * DAY_MS),
        paris: (None, None, None),
    }


# the rules


@pytest.mark.parametrize("given", [{}, {"valid_from": START + DAY_MS}, {"valid_to": START + 9 * DAY_MS}], ids=str)
@pytest.mark.parametrize("reason", ["manual", "summary"])
def test_superseding_and_holding_again_return_to_the_memory(given: dict[str, Any], reason: str) -> None:
    old = replace(as_memory(promotion("a", "a"), 1), **given)
    new, third = (replace(old, id=uuid.UUID(int=day), created_at=START + day * DAY_MS) for day in (2, 5))
    for older, newer in ((old, new), (new, old)):
        once = superseded(older, newer, reason)
        assert holds_again(once) == older
        assert superseded(once, third, reason) == superseded(older, third, reason)
