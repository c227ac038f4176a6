"""From when to when a memory held, and what ends it: a command, a word of its user, or a statement."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import Archive, Edit, Forget, LongTermEvent, Pin, Promotion, Remember, Supersede
from schemas.lifecycle import DAY_MS
from schemas.memories import STILL_HOLDS, Memory
from schemas.settings import LifecycleSettings, LongTermSettings, Updates
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


@pytest.mark.parametrize("archived", [False, True])
def test_a_memory_holds_again_when_its_successor_is_forgotten(archived: bool, make: Make) -> None:
    shard = make()
    apply(shard, OLD, NEW, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id))
    if archived:
        apply(shard, event(Archive, memory_id=OLD.memory_id))
    apply(shard, event(Forget, memory_id=NEW.memory_id))
    found = shard.archive.find("u", OLD.memory_id) if archived else held(shard)[OLD.memory_id]
    assert found is not None
    assert (found.superseded_by, found.valid_from, found.valid_to) == (None, None, None)


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


def test_a_near_copy_of_what_no_longer_held_is_a_memory_of_its_own(make: Make) -> None:
    """And so is one whose time of validity is told: merged, it would be lost."""
    shard = make()
    first = event(Remember, text="a memory", valid_to=START + DAY_MS)
    apply(shard, first)
    assert apply(shard, event(Remember, text="a memory", at=START + 1)) == {"merged": 1}
    assert apply(shard, event(Remember, text="a memory", at=START + DAY_MS)) == {"new": 1}
    assert apply(shard, event(Remember, text="a memory", at=START + DAY_MS, valid_from=START)) == {"new": 1}


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
    shard = opened(tmp_path)
    other = said("c: I have a bird", 6)
    apply(shard, OLD, NEW, other, event(Supersede, memory_id=OLD.memory_id, by=NEW.memory_id))
    apply(shard, event(Supersede, memory_id=NEW.memory_id, by=other.memory_id))
    apply(shard, event(Archive, memory_id=NEW.memory_id))
    shard.close()
    with duckdb.connect(str(tmp_path / "catalog.duckdb")) as db:
        for table in ("memories", "archive"):
            for column in ("valid_from", "valid_to"):
                db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute("DELETE FROM migrations WHERE number > 10")
    again = opened(tmp_path)
    assert times(again, OLD.memory_id) == (None, NEW.started_at)
    assert times(again, other.memory_id) == NEVER
    archived = again.archive.find("u", NEW.memory_id)
    assert archived is not None
    assert archived.valid_to == other.started_at
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


@examples(60)
@given(
    st.permutations([BERGEN, OSLO, PARIS, said("e: I weigh 70 kg", 1), said("f: I weigh 80 kg", 2)]),
    st.lists(st.integers(1, 3), min_size=5, max_size=5),
)
def test_what_is_superseded_depends_on_neither_order_nor_batches(
    tmp_path_factory: pytest.TempPathFactory, events: Sequence[Promotion], sizes: list[int]
) -> None:
    shard = opened(tmp_path_factory.mktemp("shard"), "supersede")
    rest = list(events)
    for size in sizes:
        apply(shard, *rest[:size])
        rest = rest[size:]
    current = {memory.text for memory in held(shard).values() if memory.current}
    shard.close()
    assert current == {PARIS.text, "f: I weigh 80 kg"}


# the rules


def test_superseding_and_holding_again_return_to_the_memory() -> None:
    old = Memory(1, uuid.UUID(int=1), "u", "s", None, "a", "exchange", (), 70, START, START, 0, None, False, {})  # type: ignore[arg-type]
    new = replace(old, id=uuid.UUID(int=2), created_at=START + DAY_MS)
    for older, newer in ((old, new), (new, old)):
        assert holds_again(superseded(older, newer)) == older
