"""What grows with time and not with memories is dropped, and what forgetting and redelivery need is not."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import orjson
import pytest

from schemas.events import (
    Archive,
    Edit,
    Forget,
    ForgetUser,
    Link,
    LongTermEvent,
    Pin,
    Promotion,
    Remove,
    Supersede,
    Touch,
    Unpin,
)
from schemas.fields import MAX_METADATA_BYTES
from schemas.settings import LifecycleSettings, LongTermSettings, RetentionSettings
from tables.memories.catalog.watermarks import DAY_MS, Watermark
from tables.memories.shard import Shard
from tables.memories.sources import MOST, sources
from tables.offline.diff import differences
from tests.support.making import START, axis, leaning, promotion
from tests.support.stored import as_version_7
from tests.tables.commands import event

Open = Callable[[], Shard]
KEPT = RetentionSettings(applied_days=7, history_days=30, transitions_days=30, ratings_days=30)


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Open]:
    opened: list[Shard] = []

    def shard() -> Shard:
        while opened:
            opened.pop().close()
        settings = LongTermSettings(max_memories_per_user=0)
        opened.append(Shard(0, tmp_path, "toy", 8, settings, LifecycleSettings()))
        return opened[0]

    yield shard
    for one in opened:
        one.close()


@pytest.fixture
def shard(reopen: Open) -> Shard:
    return reopen()


def tell(shard: Shard, *events: LongTermEvent, position: int | None = None, at: int = START) -> dict[str, int]:
    """A text's last character is its axis."""
    vectors = {one.event_id: axis(int(one.text[-1])) for one in events if isinstance(one, Promotion)}
    return shard.apply(events, vectors, at, position).effects()


def rows(shard: Shard, table: str, where: str = "true") -> int:
    ((number,),) = shard._catalog._db.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchall()
    return int(number)


def drop(shard: Shard, now: int, wall: int) -> dict[str, int]:
    return shard.retention.drop(now, wall, KEPT)


def keep(shard: Shard, mark: Watermark, now: int) -> int:
    return shard.watermarks.keep(mark, now, KEPT.applied_days)


def mark(offset: int) -> Watermark:
    return Watermark(offset, f"record {offset - 1}")


def test_an_events_id_is_dropped_when_it_lies_below_a_watermark_that_is_old_enough(shard: Shard) -> None:
    one, other, last = (promotion(f"text {n}", str(n)) for n in range(3))
    tell(shard, one, other, position=2)
    keep(shard, mark(2), START)
    tell(shard, last, position=3)
    assert shard.watermarks.due(START + DAY_MS - 1, shard.position()) is None
    assert shard.watermarks.due(START + DAY_MS, shard.position()) == (mark(2), 3)
    assert (keep(shard, mark(3), START + 7 * DAY_MS - 1), shard.watermarks.low()) == (0, None)
    assert rows(shard, "applied") == 3
    assert keep(shard, Watermark(3, "later"), START + 7 * DAY_MS) == 2
    assert (shard.watermarks.low(), rows(shard, "applied")) == (mark(2), 1)


def test_an_event_of_a_group_of_which_the_end_is_not_in_is_not_below_the_groups_end(shard: Shard) -> None:
    """The worker may die between the two, and all of the group is read again."""
    tell(shard, promotion("text 0", "a"), position=5)
    keep(shard, mark(5), START)
    touched = event(Touch, memory_ids=[promotion("text 0", "a").memory_id])
    shard.apply([touched], {}, START, None, 9)
    keep(shard, mark(5)._replace(digest="again"), START + 7 * DAY_MS)
    assert rows(shard, "applied") == 1
    assert tell(shard, touched, position=9) == {"repeated": 1}


def test_where_the_log_is_another_one_what_came_of_the_former_one_is_kept_as_long_as_what_comes(shard: Shard) -> None:
    touched = event(Touch, memory_ids=[promotion("text 0", "a").memory_id])
    tell(shard, promotion("text 0", "a"), touched, position=1_000)
    keep(shard, mark(1_000), START)
    shard.watermarks.start_over()
    assert (shard.watermarks.low(), shard.watermarks.due(START, shard.position())) == (None, (None, 1_000))
    tell(shard, position=10)
    keep(shard, mark(10), START)
    assert tell(shard, touched) == {"repeated": 1}
    assert keep(shard, mark(20), START + 7 * DAY_MS) == 2


def test_ids_that_are_dropped_take_no_memory(shard: Shard) -> None:
    events = [event(Touch, memory_ids=[]) for _ in range(50)]
    tell(shard, *events, position=50)
    assert len(shard._catalog.ids) == 50
    keep(shard, mark(50), START)
    keep(shard, mark(60), START + 8 * DAY_MS)
    assert len(shard._catalog.ids) == 0


def test_history_and_published_changes_of_state_are_kept_for_so_many_days(shard: Shard) -> None:
    kept = promotion("text 0", "a", importance=70)
    tell(shard, kept, event(Pin, memory_id=kept.memory_id), event(Unpin, memory_id=kept.memory_id, at=START + DAY_MS))
    for day in (20, 60):
        shard.recompute(START + day * DAY_MS, LifecycleSettings())
    shard.ageing.mark_published(1)
    assert drop(shard, START + 30 * DAY_MS, START) == {}
    assert drop(shard, START + 30 * DAY_MS + 1, START) == {"history": 1}
    assert drop(shard, START + 99 * DAY_MS, START) == {"history": 1, "transitions": 1}
    assert [(one.from_, one.to) for one in shard.ageing.unpublished()] == [("cold", "deprecated")]


def test_a_models_answer_is_kept_for_so_many_days(shard: Shard) -> None:
    identity = uuid.uuid4()
    shard.ratings.put(identity, "m", 7, START)
    assert drop(shard, START, START + 30 * DAY_MS) == {}
    assert drop(shard, START, START + 30 * DAY_MS + 1) == {"ratings": 1}
    assert shard.ratings.of(identity, "m") is None


def test_a_clock_that_jumps_ahead_costs_nothing(shard: Shard) -> None:
    """Days are reckoned from the newest access, and from the newest answer."""
    kept, later = promotion("text 0", "a"), promotion("text 1", "b", at=START + 30 * DAY_MS + 1)
    tell(shard, kept, event(Pin, memory_id=kept.memory_id))
    shard.ratings.put(kept.memory_id, "m", 7, START)
    assert shard.retention.drop_old(START + 400 * DAY_MS, START + 400 * DAY_MS, KEPT) == {}
    tell(shard, later)
    shard.ratings.put(later.memory_id, "m", 7, START + 30 * DAY_MS + 1)
    assert shard.retention.drop_old(START + 400 * DAY_MS, START + 400 * DAY_MS, KEPT) == {"history": 1, "ratings": 1}


def test_a_link_goes_with_its_ends(shard: Shard) -> None:
    """Not while one of them is archived: it may come back."""
    one, other, third = (promotion(f"text {n}", str(n)) for n in range(3))
    tell(shard, one, other, third)
    for a, b in ((one, other), (other, third)):
        tell(shard, event(Link, source_id=a.memory_id, target_id=b.memory_id))
    tell(shard, event(Archive, memory_id=one.memory_id))
    assert drop(shard, START, START) == {}
    tell(shard, event(Remove, memory_id=one.memory_id))
    assert drop(shard, START, START) == {"links": 1}
    assert [link.target_id for link in shard.links.of("u", other.memory_id)] == [third.memory_id]


def test_what_was_forgotten_is_said_once_and_stays_forgotten(shard: Shard) -> None:
    kept, later = promotion("text 0", "a"), promotion("text 1", "b", at=START + 5)
    tell(shard, kept)
    for at in (START + 1, START + 9, START + 3):
        tell(shard, event(Forget, memory_id=kept.memory_id, at=at), event(ForgetUser, at=at))
    assert drop(shard, START + 999 * DAY_MS, START + 999 * DAY_MS)["tombstones"] == 4
    assert rows(shard, "tombstones") == 2
    again = [one.model_copy(update={"event_id": uuid.uuid4()}) for one in (kept, later)]
    assert tell(shard, *again) == {"forgotten": 2}


def test_the_names_of_a_memory_are_forgotten_with_it_however_old_they_are(reopen: Open) -> None:
    """The history that a near-copy went into it is dropped; where it went is not, nor when it was said."""
    shard = reopen()
    first, again = promotion("text 0", "a"), promotion("text 0", "b", at=START + DAY_MS)
    tell(shard, first, again)
    assert drop(shard, START + 99 * DAY_MS, START)["history"] == 1
    shard = reopen()
    tell(shard, event(ForgetUser, at=START + 1))
    assert shard.forgotten([("u", again.memory_id, again.started_at)]) == [True]


def test_that_words_are_in_a_summary_is_known_while_the_summary_is_there(tmp_path: Path) -> None:
    settings = LongTermSettings(max_memories_per_user=4, retention=KEPT)
    shard = Shard(0, tmp_path, "toy", 8, settings, LifecycleSettings())
    said = [promotion(f"text {n}", f"m{n}", at=START + n) for n in range(5)]
    tell(shard, *said)
    (whole,) = (memory for memory in shard.memories_of("u") if memory.kind == "summary")
    noted = len(whole.summary_of)
    assert drop(shard, START + 99 * DAY_MS, START) == {}
    assert rows(shard, "history", "event = 'summarized'") == noted
    tell(shard, event(Archive, memory_id=whole.id))
    assert drop(shard, START + 99 * DAY_MS, START) == {}
    tell(shard, event(Remove, memory_id=whole.id))
    assert drop(shard, START + 99 * DAY_MS, START) == {"history": noted}
    shard.close()


def test_a_memory_names_a_bounded_number_of_its_messages() -> None:
    ids = [str(number) for number in range(2 * MOST)]
    assert sources(ids[:MOST]) == tuple(ids[:MOST])
    assert sources(ids) == (*ids[: MOST // 2], *ids[-MOST // 2 :])
    assert sources(sources(ids[:MOST]), ids[MOST : MOST + 3])[-4:] == (*ids[MOST - 1 : MOST + 3],)


def test_edits_do_not_add_metadata_without_end(shard: Shard) -> None:
    """What outgrows 32 KiB is refused, and noted; a smaller one is taken again."""
    kept = promotion("text 0", "a")
    tell(shard, kept)
    large = {f"key {n}": "x" * 20_000 for n in range(2)}
    assert tell(shard, event(Edit, memory_id=kept.memory_id, metadata={"key 0": large["key 0"]})) == {"edited": 1}
    assert tell(shard, event(Edit, memory_id=kept.memory_id, metadata={"key 1": large["key 1"]})) == {"refused": 1}
    assert tell(shard, event(Edit, memory_id=kept.memory_id, metadata={"key 0": None, "k": 1})) == {"edited": 1}
    (memory,) = shard.memories_of("u")
    assert {key: value for key, value in memory.meta.items() if key != "promotion"} == {"k": 1}
    assert shard.history.of("u", memory.id)[1].details["before"] == {"refused": "metadata"}


def test_a_shard_of_an_earlier_version_knows_its_events_and_when_near_copies_were_said(
    tmp_path: Path, reopen: Open
) -> None:
    """Its ids go with the first watermark that is old enough and lies behind what was being applied."""
    first, again = promotion("text 0", "a"), promotion("text 0", "b", at=START + DAY_MS)
    earlier = Shard(0, tmp_path, "toy", 8, LongTermSettings(max_memories_per_user=0), LifecycleSettings())
    tell(earlier, first, again, position=2)
    earlier.close()
    as_version_7(tmp_path)
    with duckdb.connect(str(tmp_path / "catalog.duckdb")) as db:
        db.execute("ALTER TABLE applied DROP COLUMN log_end")
        db.execute("ALTER TABLE merged DROP COLUMN said_at")
        db.execute("DROP TABLE watermarks")
        db.execute("DELETE FROM migrations WHERE name LIKE '%_bounds'")
    shard = reopen()
    assert tell(shard, first, again) == {"repeated": 2}
    assert shard._catalog.merged_after("u", START) == {again.memory_id}
    assert shard._catalog.merged_after("u", START + DAY_MS) == set()
    keep(shard, mark(1_025), START)
    assert keep(shard, mark(1_100), START + 7 * DAY_MS) == 0
    keep(shard, mark(1_026), START)
    assert keep(shard, mark(1_200), START + 7 * DAY_MS) == 2


#: What each day brings of a memory that is gone a week later.
def of_a_day(day: int, kept: Promotion) -> Sequence[LongTermEvent]:
    at = START + day * DAY_MS
    new, older = (promotion("text 1", f"d{n}", at=START + n * DAY_MS) for n in (day, day - 7))
    again = promotion("text 0", f"again {day}", at=at)
    mine = new.memory_id
    return [
        new,
        again,
        event(Link, at=at, source_id=mine, target_id=kept.memory_id),
        event(Touch, at=at, memory_ids=[mine, kept.memory_id]),
        event(Edit, at=at, memory_id=mine, metadata={f"day {day}": "x"}),
        event(Edit, at=at, memory_id=kept.memory_id, metadata={f"day {day}": "x" * 3_000}),
        event(Pin, at=at, memory_id=mine),
        event(Unpin, at=at, memory_id=mine),
        event(Supersede, at=at, memory_id=mine, by=kept.memory_id),
        event(Archive, at=at, memory_id=older.memory_id),
        event(Remove, at=at, memory_id=older.memory_id),
        event(ForgetUser, "v", at=at),
    ]


#: Days.
HALF = 20
TABLES = ("applied", "history", "transitions", "ratings", "links", "tombstones", "watermarks", "memories", "archive")


@pytest.mark.slow
def test_over_simulated_months_rows_stay_as_many_as_they_were(tmp_path: Path) -> None:
    """Each day's end is read again; the log starts over in the middle. But `merged`: a row for each near-copy.

    A half is twice as long as rows are kept, and as what each of them names is there.
    """
    briefly = RetentionSettings(applied_days=3, history_days=8, transitions_days=8, ratings_days=8)
    settings = LongTermSettings(max_memories_per_user=0)
    shard = Shard(0, tmp_path, "toy", 8, settings, LifecycleSettings())
    kept = promotion("text 0", "kept")
    tell(shard, kept, position=1)
    counts, position, merged = [], 1, 0
    for day in range(2 * HALF):
        events, now = of_a_day(day, kept), START + day * DAY_MS
        if day == HALF:
            shard.watermarks.start_over()
            position = 0
        position += len(events)
        vectors = {one.event_id: axis(0) if one.text == "text 0" else leaning(1, 2 + day % 6, 0.5)
                   for one in events if isinstance(one, Promotion)}  # fmt: skip
        effects = shard.apply(events, vectors, now, position).effects()
        merged += effects["merged"]
        assert shard.apply(events[-4:], vectors, now, position).effects() == {"repeated": 4}
        shard.ratings.put(uuid.uuid4(), "m", 5, now)
        shard.recompute(now, LifecycleSettings())
        shard.ageing.mark_published(1_000)
        if shard.watermarks.due(now, shard.position()) is not None:
            shard.watermarks.keep(mark(position), now, briefly.applied_days)
        shard.retention.drop_old(now, now, briefly)
        if day in (HALF - 1, 2 * HALF - 1):
            counts.append({table: rows(shard, table) for table in TABLES} | {"ids": len(shard._catalog.ids)})
    flat, (before, after) = set(TABLES), counts
    assert {table: after[table] for table in flat} == {table: before[table] for table in flat}
    assert after["ids"] - before["ids"] == HALF
    assert rows(shard, "merged") == merged == 2 * HALF
    (memory,) = (one for one in shard.memories_of("u") if one.id == kept.memory_id)
    assert len(orjson.dumps(memory.meta)) < 2 * MAX_METADATA_BYTES
    shard.close()


@pytest.mark.slow
def test_a_shard_that_dropped_rows_is_as_one_that_has_them_all(tmp_path: Path) -> None:
    """Where shards are compared, as after a rebuilding from the log."""
    settings = LongTermSettings(max_memories_per_user=0)
    for name in ("live", "made"):
        shard = Shard(0, tmp_path / name, "toy", 8, settings, LifecycleSettings())
        one, other = promotion("text 0", "a"), promotion("text 1", "b")
        tell(shard, one, other, position=2)
        tell(shard, event(Link, source_id=one.memory_id, target_id=other.memory_id))
        for at in (START, START + 2 * DAY_MS):
            tell(shard, event(ForgetUser, "v", at=at))
        for kind in (Pin, Unpin, Archive, Remove):
            tell(shard, event(kind, memory_id=one.memory_id))
        tell(shard, event(Pin, memory_id=other.memory_id, at=START + 50 * DAY_MS))
        shard.ageing.mark_published(10)
        if name == "live":
            assert drop(shard, START + 60 * DAY_MS, START) == {
                "history": 2, "transitions": 2, "links": 1, "tombstones": 1
            }  # fmt: skip
        shard.close()
    live, made = (tmp_path / name / "catalog.duckdb" for name in ("live", "made"))
    assert differences(0, live, made) == []
    assert differences(0, live, made, ["u"]) == []
