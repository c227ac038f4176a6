"""A shard applies events once, and finds its way back after a crash."""

from __future__ import annotations

import gc
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import count, islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import EmbeddingMismatch, ShardLocked
from schemas.events import Forget, ForgetUser, Link, LongTermEvent, Pin, Promotion, Remember, Touch, Unlink, Unpin
from schemas.lifecycle import DAY_MS, score_of, state_of
from schemas.memories import Memory, State
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.database.migrations import statement
from tables.memories.applied import Applied
from tables.memories.shard import Shard
from tables.vectors.index import Vectors, cell_of
from tables.vectors.manifest import segment_files
from tests.support.examples import examples
from tests.support.making import START, axis, leaning, memory_of, promotion
from tests.support.segments import copied, indexed, lose, put_back
from tests.support.stored import stored_in
from tests.tables.commands import COMMANDS, VECTORS, WHO, event, vectors_of

Open = Callable[[], Shard]


@pytest.fixture
def reopen(tmp_path: Path) -> Open:
    return lambda: Shard(0, tmp_path / "0", "toy", 8, LongTermSettings(), LifecycleSettings())


def apply(shard: Shard, *events: LongTermEvent, place: int | None = None) -> None:
    """Apply; each text gets an axis of its own, or all the same one."""
    texts = [event for event in events if isinstance(event, Promotion)]
    places = {event.event_id: axis(int(event.text) if place is None else place) for event in texts}
    shard.apply(events, places, START)


def touch(*ids: uuid.UUID, user: str = "u", at: int = START) -> Touch:
    return Touch(event_id=uuid.uuid4(), user_id=user, timestamp=at, memory_ids=list(ids))


def test_the_same_event_twice_changes_nothing(reopen: Open) -> None:
    shard, event = reopen(), promotion("1", "a")
    apply(shard, event, event)
    apply(shard, event)
    assert shard.count() == 1
    shard.close()


def test_a_near_copy_is_merged_with_its_source(reopen: Open) -> None:
    """Stored or of the same batch: one row, all sources; each time it counts as referred to."""
    shard = reopen()
    apply(shard, promotion("x", "a"), promotion("x", "b", importance=95), place=1)
    apply(shard, promotion("x", "c"), place=1)
    (memory,) = shard.memories_of("u")
    assert (memory.message_ids, memory.importance) == (("a", "b", "c"), 99)
    shard.close()


def test_another_users_near_copy_is_another_memory(reopen: Open) -> None:
    shard = reopen()
    apply(shard, promotion("x", "a"), promotion("x", "a", user="v"), place=1)
    assert shard.count() == 2
    shard.close()


def test_access_counts_exactly_and_is_capped(reopen: Open) -> None:
    shard, kept = reopen(), promotion("1", "a", importance=97)
    apply(shard, kept)
    once, later = touch(kept.memory_id), touch(kept.memory_id, at=START + DAY_MS)
    apply(shard, once, once)
    apply(shard, once)
    apply(shard, later)
    (memory,) = shard.memories_of("u")
    assert (memory.importance, memory.access_count, memory.last_accessed) == (100, 2, START + DAY_MS)
    shard.close()


def test_nobody_changes_anothers_memory(reopen: Open) -> None:
    shard, kept = reopen(), promotion("1", "a")
    apply(shard, kept)
    theirs = {"event_id": uuid.uuid4(), "user_id": "v", "timestamp": START, "memory_id": kept.memory_id}
    apply(shard, touch(kept.memory_id, user="v"), Pin.model_validate(theirs))
    apply(shard, Forget.model_validate({**theirs, "event_id": uuid.uuid4()}))
    (memory,) = shard.memories_of("u")
    assert (memory.access_count, memory.pinned) == (0, False)
    shard.close()


def test_a_users_memories_are_those_of_the_catalog_whatever_the_index_holds(reopen: Open) -> None:
    """The index is a cache: what it lacks is found by no vector, and is there all the same."""
    shard, kept = reopen(), promotion("1", "a")
    apply(shard, kept, promotion("2", "b"))
    (seq,) = (memory.seq for memory in shard.memories_of("u") if memory.id == kept.memory_id)
    shard.index.remove(np.array([seq], np.int64))
    shard.rows._recent.drop_all(shard.rows)
    assert [memory.text for memory in shard.memories_of("u")] == ["1", "2"]
    shard.close()


def test_what_is_forgotten_stays_forgotten_when_replayed(reopen: Open) -> None:
    shard, kept, other = reopen(), promotion("1", "a"), promotion("2", "b", user="v")
    apply(shard, kept, other)
    apply(shard, Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=kept.memory_id))
    apply(shard, ForgetUser(event_id=uuid.uuid4(), user_id="v", timestamp=START + 1))
    again = [event.model_copy(update={"event_id": uuid.uuid4()}) for event in (kept, other)]
    apply(shard, *again)
    assert shard.count() == 0
    shard.close()


@pytest.mark.parametrize("damage", ["missing", "truncated", "older"])
def test_a_lost_or_old_index_is_rebuilt_from_the_catalog(reopen: Open, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "0"
    shard = reopen()
    apply(shard, promotion("1", "a"))
    shard.save()
    older = copied(folder)
    apply(shard, promotion("2", "b"), promotion("3", "c"))
    shard.close()
    if damage == "missing":
        lose(folder)
    elif damage == "older":
        put_back(folder, older)
    else:
        for segment in segment_files(folder):
            segment.write_bytes(segment.read_bytes()[:200])
    shard = reopen()
    memories = shard.memories_of("u")
    assert shard.similarities("u", axis(3), memories).tolist() == [0, 0, 1]
    shard.close()


def test_another_model_is_refused(reopen: Open, tmp_path: Path) -> None:
    reopen().close()
    with pytest.raises(EmbeddingMismatch, match="reembed"):
        Shard(0, tmp_path / "0", "other", 8, LongTermSettings(), LifecycleSettings())


def test_a_file_that_another_process_holds_is_a_clear_error(reopen: Open, tmp_path: Path) -> None:
    import subprocess
    import sys

    reopen().close()
    held = str(tmp_path / "0" / "catalog.duckdb")
    code = f"import duckdb; c = duckdb.connect({held!r}); print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ShardLocked):
            reopen()
        holder.stdin.close()


def test_recompute_writes_the_changes_alone(reopen: Open) -> None:
    """Each change is a row, an entry in the memory's meta, and waits for its topic."""
    shard, lifecycle = reopen(), LifecycleSettings()
    apply(shard, promotion("1", "a", importance=70), promotion("2", "b", at=START + 60 * DAY_MS))
    now = START + 60 * DAY_MS
    shard.recompute(now, lifecycle)
    shard.recompute(now, lifecycle)
    (transition,) = shard.ageing.unpublished()
    assert (transition.from_, transition.to) == ("active", "deprecated")
    assert [len(m.meta.get("transitions", [])) for m in shard.memories_of("u")] == [1, 0]
    shard.ageing.mark_published(1)
    assert shard.ageing.unpublished() == []
    assert shard.ageing.state_counts(now, lifecycle) == {State.ACTIVE: 1, State.COLD: 0, State.DEPRECATED: 1}
    shard.close()


@pytest.fixture(scope="module")
def formula() -> Iterator[duckdb.DuckDBPyConnection]:
    """The statements, and no table."""
    with duckdb.connect(":memory:") as db:
        db.execute(statement("lifecycle"))
        yield db


@examples(100)
@given(
    importance=st.floats(0, 100),
    days=st.one_of(st.floats(-10, 400), st.sampled_from([7.0, 37.0])),
    pinned=st.booleans(),
)
def test_the_sql_and_the_rule_agree(
    formula: duckdb.DuckDBPyConnection, importance: float, days: float, pinned: bool
) -> None:
    """tables/database/sql/lifecycle.sql and schemas/lifecycle.py are one formula."""
    lifecycle = LifecycleSettings()
    now = START + int(days * DAY_MS)
    row = formula.execute(
        "SELECT score_of($i::DOUBLE, $p, $at, $now, 7.0, 30.0) AS s, state_of(s, 70.0, 30.0)",
        {"i": importance, "p": pinned, "at": START, "now": now},
    ).fetchone()
    memory = memory_of(importance, pinned)
    assert row is not None
    assert row[0] == pytest.approx(score_of(memory, now, lifecycle))
    assert row[1] == state_of(row[0], lifecycle).value


def forget(memory_id: uuid.UUID, user: str = "u") -> Forget:
    return event(Forget, user, memory_id=memory_id)


def placed(shard: Shard, *placed: tuple[Promotion, Vectors]) -> Applied:
    """Apply promotions with vectors of their own."""
    return shard.apply([one for one, _ in placed], {one.event_id: vector for one, vector in placed}, START)


def texts(shard: Shard, user: str = "u") -> list[str]:
    return [memory.text for memory in shard.memories_of(user)]


def table(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    """Rows of a shard that nobody has open."""
    with duckdb.connect(str(folder / "catalog.duckdb"), read_only=True) as db:
        return db.execute(sql).fetchall()


def test_a_promotion_becomes_a_memory_with_its_reasons(reopen: Open) -> None:
    """A new memory is born active; it was last accessed when its exchange ended."""
    shard = reopen()
    kept = promotion("1", "a", "b", at=START + 9).model_copy(
        update={"started_at": START, "agent_id": "bot", "speakers": ["Ann"], "metadata": {"emotion": "sad"}}
    )
    apply(shard, kept)
    (memory,) = shard.memories_of("u")
    assert memory == Memory(
        seq=1,
        id=kept.memory_id,
        user_id="u",
        session_id="s",
        agent_id="bot",
        text="1",
        kind="exchange",
        message_ids=("a", "b"),
        importance=80,
        created_at=START,
        last_accessed=START + 9,
        access_count=0,
        state=State.ACTIVE,
        pinned=False,
        meta={"emotion": "sad", "speakers": ["Ann"], "promotion": asdict(kept.parts)},
    )
    shard.close()


def test_what_is_remembered_on_request_is_a_memory_too(reopen: Open) -> None:
    """It has the greatest importance, and the event's id where it names none."""
    shard, asked = reopen(), event(Remember, text="1")
    shard.apply([asked], {asked.event_id: axis(1)}, START)
    (memory,) = shard.memories_of("u")
    assert (memory.id, memory.kind, memory.importance, memory.message_ids) == (asked.event_id, "remember", 100, ())
    shard.close()


def test_a_memory_is_kept_with_its_embedding(reopen: Open) -> None:
    """On the disk: another process finds it by its vector."""
    shard, one, other = reopen(), event(Remember, text="1"), event(Remember, text="2")
    shard.apply([one, other], {one.event_id: axis(1), other.event_id: axis(2)}, START)
    shard.close()
    shard = reopen()
    memories = shard.memories_of("u")
    found = dict(zip((memory.id for memory in memories), shard.similarities("u", axis(2), memories), strict=True))
    assert found == {one.event_id: 0, other.event_id: 1}
    shard.close()


def test_the_result_counts_what_a_batch_came_to(reopen: Open) -> None:
    shard, one, two = reopen(), promotion("1", "a"), promotion("2", "b")
    copied = promotion("1", "c")
    apply(shard, one, two, copied, touch(one.memory_id), touch(uuid.uuid4()), forget(two.memory_id))
    assert shard.apply([one, one, two], {}, START) == Applied(repeated=3)
    again = two.model_copy(update={"event_id": uuid.uuid4()})
    assert placed(shard, (again, axis(2))) == Applied(forgotten=1)
    shard.close()
    shard = reopen()
    assert placed(shard, (promotion("3", "d"), axis(3)), (promotion("3", "e"), axis(3))) == Applied(new=1, merged=1)
    shard.close()


def test_an_access_raises_importance_by_2(reopen: Open) -> None:
    shard, kept = reopen(), promotion("1", "a", importance=80)
    apply(shard, kept)
    apply(shard, touch(kept.memory_id, at=START + 5), touch(kept.memory_id, at=START + 3))
    (memory,) = shard.memories_of("u")
    assert (memory.importance, memory.access_count) == (84, 2)
    assert memory.last_accessed == START + 5  # an older one, delivered late, takes nothing back
    shard.close()


def test_a_redelivered_access_counts_once_after_reopening_too(reopen: Open) -> None:
    shard, kept = reopen(), promotion("1", "a", importance=80)
    once = touch(kept.memory_id)
    apply(shard, kept, once)
    shard.close()
    shard = reopen()
    apply(shard, once)
    apply(shard, once, touch(kept.memory_id))
    (memory,) = shard.memories_of("u")
    assert (memory.importance, memory.access_count) == (84, 2)
    shard.close()


def test_events_that_are_not_in_are_named_once_in_their_order(reopen: Open) -> None:
    shard, one, two, three = reopen(), promotion("1", "a"), promotion("2", "b"), promotion("3", "c")
    apply(shard, two)
    assert shard.unapplied([three, two, one, three]) == [three, one]
    shard.close()


def test_a_pinned_memory_does_not_age_until_it_is_unpinned(reopen: Open) -> None:
    shard, kept = reopen(), promotion("1", "a")
    late = START + 365 * DAY_MS
    apply(shard, kept, event(Pin, memory_id=kept.memory_id))
    assert shard.recompute(late, LifecycleSettings()) == 0
    apply(shard, event(Unpin, memory_id=kept.memory_id))
    assert shard.recompute(late, LifecycleSettings()) == 1
    assert [memory.state for memory in shard.memories_of("u")] == [State.DEPRECATED]
    shard.close()


@pytest.mark.parametrize(("cosine", "count"), [(0.951, 1), (0.949, 2)])
def test_near_copies_begin_at_a_cosine_of_095(reopen: Open, cosine: float, count: int) -> None:
    shard = reopen()
    placed(shard, (promotion("x", "a"), axis(0)))
    placed(shard, (promotion("x", "b"), leaning(0, 1, cosine)))
    assert shard.count() == count
    shard.close()


def test_a_near_copy_of_what_is_forgotten_is_a_new_memory(reopen: Open) -> None:
    """Within one batch, too."""
    shard, first, second = reopen(), promotion("I row", "a"), promotion("I row!", "b")
    placed(shard, (first, axis(0)))
    shard.apply([forget(first.memory_id), second], {second.event_id: axis(0)}, START)
    assert texts(shard) == ["I row!"]
    shard.close()


@pytest.mark.slow
def test_a_near_copy_is_found_however_many_others_of_the_cell_said_the_same(reopen: Open) -> None:
    """Users share cells; what others said stands between a user and their own words."""
    cell = cell_of("u")
    others = list(islice((name for name in map(str, count()) if cell_of(name) == cell), 6))
    shard = reopen()
    placed(shard, *((promotion("thanks", "a", user=user), axis(0)) for user in others))
    placed(shard, (promotion("thanks", "a"), leaning(0, 1, 0.97)))
    placed(shard, (promotion("thanks", "b"), axis(0)))
    (memory,) = shard.memories_of("u")
    assert memory.message_ids == ("a", "b")
    shard.close()


def test_forgetting_a_user_takes_everything_up_to_its_time(reopen: Open) -> None:
    """Their later memories and other users' stay; what was before, replayed, does not come back."""
    shard = reopen()
    before, at, after = (promotion(str(i), str(i), at=START + i) for i in (1, 2, 3))
    theirs = promotion("1", "a", user="v")
    apply(shard, before, theirs)
    apply(shard, at, event(ForgetUser, at=START + 2), after)
    assert (texts(shard), texts(shard, "v")) == (["3"], ["1"])
    apply(shard, *(one.model_copy(update={"event_id": uuid.uuid4()}) for one in (before, at)))
    assert texts(shard) == ["3"]
    shard.close()


def test_what_was_forgotten_before_it_came_does_not_come(reopen: Open) -> None:
    """A rebuilt shard may read the commands before a promotion that is sent again."""
    shard, kept = reopen(), promotion("1", "a")
    apply(shard, forget(kept.memory_id))
    apply(shard, kept)
    assert shard.count() == 0
    shard.close()


def test_anothers_forgetting_does_not_keep_a_memory_out(reopen: Open) -> None:
    shard, kept = reopen(), promotion("1", "a")
    apply(shard, forget(kept.memory_id, user="v"), event(ForgetUser, "v", at=START + 9))
    apply(shard, kept)
    assert texts(shard) == ["1"]
    shard.close()


def test_a_tombstone_is_known_for_what_it_forbids(reopen: Open) -> None:
    """The user's memory with that id; or whatever is no younger than the user's forgetting."""
    shard, mine, other = reopen(), uuid.uuid4(), uuid.uuid4()
    apply(shard, forget(mine), event(ForgetUser, "v", START))
    asked = [("u", mine, START), ("u", other, START), ("v", mine, START), ("v", mine, START + 1), ("w", mine, START)]
    assert shard.forgotten(asked) == [True, False, True, False, False]
    assert shard.forgotten([]) == []
    shard.close()


def test_a_pin_does_not_protect_from_forgetting(reopen: Open) -> None:
    shard, kept = reopen(), promotion("1", "a")
    apply(shard, kept, event(Pin, memory_id=kept.memory_id), forget(kept.memory_id))
    assert shard.count() == 0
    shard.close()


def test_a_forgotten_memory_is_not_in_the_index(reopen: Open) -> None:
    shard, one, two = reopen(), promotion("1", "a"), promotion("2", "b")
    apply(shard, one, two)
    both = shard.memories_of("u")
    apply(shard, forget(one.memory_id))
    assert shard.similarities("u", axis(1), both).tolist() == [0, 0]
    shard.close()


LINKS = "SELECT source_id, target_id, kind, weight FROM links"


def link(one: Promotion, other: Promotion, user: str = "u") -> Link:
    return event(Link, user, source_id=one.memory_id, target_id=other.memory_id, weight=0.5)


def unlink(one: Promotion, other: Promotion, user: str = "u") -> Unlink:
    return event(Unlink, user, source_id=one.memory_id, target_id=other.memory_id)


def test_only_its_user_links_and_unlinks_a_memory(reopen: Open, tmp_path: Path) -> None:
    shard, one, two, theirs = reopen(), promotion("1", "a"), promotion("2", "b"), promotion("3", "c", user="v")
    apply(shard, one, two, theirs, link(one, two), link(one, theirs), link(two, one, "v"), unlink(one, two, "v"))
    shard.close()
    assert table(tmp_path / "0", LINKS) == [(one.memory_id, two.memory_id, "related", 0.5)]


def test_links_and_unlinks_of_one_batch_act_in_their_order(reopen: Open, tmp_path: Path) -> None:
    """What a batch comes to is what its events come to one by one."""
    shard, one, two = reopen(), promotion("1", "a"), promotion("2", "b")
    apply(shard, one, two, link(one, two))
    apply(shard, unlink(one, two), link(one, two))
    shard.close()
    assert len(table(tmp_path / "0", LINKS)) == 1


def test_no_link_to_a_forgotten_memory_is_left(reopen: Open, tmp_path: Path) -> None:
    """Also when it was linked in the batch that forgets it."""
    shard, one, two = reopen(), promotion("1", "a"), promotion("2", "b")
    apply(shard, one, two)
    apply(shard, link(one, two), forget(two.memory_id))
    shard.close()
    assert table(tmp_path / "0", LINKS) == []


def test_a_batch_that_cannot_be_worked_out_changes_nothing(reopen: Open) -> None:
    """The second promotion has no vector: the first is not in either, and both can come again."""
    shard, one, two = reopen(), promotion("1", "a"), promotion("2", "b")
    with pytest.raises(KeyError):
        shard.apply([one, two], {one.event_id: axis(1)}, START)
    assert (shard.count(), shard.unapplied([one, two])) == (0, [one, two])
    apply(shard, one, two)
    assert texts(shard) == ["1", "2"]
    shard.close()


def test_a_write_that_fails_is_not_seen_by_anyone(reopen: Open, tmp_path: Path) -> None:
    """Neither in the catalog, nor in the index, nor in the memories at hand; then the batch goes in."""
    shard, one, two = reopen(), promotion("1", "a"), promotion("2", "b")
    apply(shard, one)
    before = shard.memories_of("u")
    damaged = two.model_copy(update={"metadata": {"a": object()}})
    with pytest.raises(TypeError):
        apply(shard, touch(one.memory_id), damaged)
    assert shard.memories_of("u") == before
    apply(shard, two)
    memories = shard.memories_of("u")
    assert shard.similarities("u", axis(2), memories).tolist() == [0, 1]
    shard.close()


def test_a_users_memories_are_the_same_object_until_one_changes(reopen: Open) -> None:
    """What is worked out from them (word statistics) is worked out once."""
    shard, one = reopen(), promotion("1", "a")
    apply(shard, one)
    held = shard.memories_of("u")
    apply(shard, promotion("2", "b", user="v"))
    assert shard.memories_of("u") is held
    apply(shard, touch(one.memory_id))
    assert shard.memories_of("u") != held
    shard.close()


def crash(reopen: Open, folder: Path, shard: Shard, files: dict[str, bytes]) -> Shard:
    """Reopen with the index's files as they were before: everything since then died with the process."""
    shard.close()
    put_back(folder, files)
    return reopen()


def test_a_forgotten_memory_does_not_come_back_from_an_older_index(reopen: Open, tmp_path: Path) -> None:
    shard, one, two = reopen(), promotion("1", "a"), promotion("2", "b")
    apply(shard, one, two)
    shard.save()
    older = copied(tmp_path / "0")
    both = shard.memories_of("u")
    apply(shard, forget(one.memory_id))
    shard = crash(reopen, tmp_path / "0", shard, older)
    assert shard.similarities("u", axis(1), both).tolist() == [0, 0]
    shard.close()


@pytest.mark.slow
def test_a_new_memory_never_has_a_forgotten_ones_vector(reopen: Open, tmp_path: Path) -> None:
    """Forgotten and crashed, then remembered and crashed: no index file was saved in between."""
    shard, one, two = reopen(), promotion("1", "a"), promotion("2", "b")
    apply(shard, one)
    shard.save()
    older = copied(tmp_path / "0")
    apply(shard, forget(one.memory_id))
    shard = crash(reopen, tmp_path / "0", shard, older)
    at_opening = copied(tmp_path / "0")  # what a crash right after this opening finds
    apply(shard, two)
    shard = crash(reopen, tmp_path / "0", shard, at_opening)
    assert shard.similarities("u", axis(2), shard.memories_of("u")).tolist() == [1]
    shard.close()


def test_a_mended_index_is_saved(reopen: Open, tmp_path: Path) -> None:
    """Else every opening would mend it again."""
    shard = reopen()
    apply(shard, promotion("1", "a"))
    shard = crash(reopen, tmp_path / "0", shard, {})
    shard.close()
    assert indexed(tmp_path / "0", 8) == [1]


def test_a_refused_model_lets_go_of_the_file(reopen: Open, tmp_path: Path) -> None:
    reopen().close()
    with pytest.raises(EmbeddingMismatch):
        Shard(0, tmp_path / "0", "toy", 16, LongTermSettings(), LifecycleSettings())
    reopen().close()


@pytest.mark.slow
def test_a_closed_shard_keeps_no_connection(reopen: Open) -> None:
    """Whoever still names it, as the traceback of a cancelled call does."""
    shard = reopen()
    catalog = weakref.ref(shard._catalog)
    shard.close()
    gc.collect()
    assert catalog() is None


#: All that a shard holds and that is not a matter of the moment when it was written.
HELD = {
    "memories": "SELECT * FROM memories",
    "vectors": "SELECT seq, digest FROM vectors",
    "archive": "SELECT * FROM archive",
    "links": "SELECT * FROM links",
    "history": "SELECT * FROM history",
    "transitions": "SELECT * FROM transitions",
    "merged": "SELECT * FROM merged",
    "tombstones": "SELECT * FROM tombstones",
    "applied": "SELECT event_id FROM applied",
}


def let_go(shard: Shard) -> None:
    """Close it, unless it is."""
    if hasattr(shard, "_catalog"):
        shard.close()


@pytest.mark.slow
@examples(8)
@given(events=st.lists(COMMANDS, min_size=5, max_size=25), limit=st.sampled_from([0, 2, 3]), data=st.data())
def test_cuts_redeliveries_and_crashes_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, events: list[LongTermEvent], limit: int, data: st.DataObject
) -> None:
    """One batch, or any cut of it with batches read again and the index lost: the same shard."""
    folder = tmp_path_factory.mktemp("shards")
    vectors = vectors_of(events)

    with ExitStack() as stack:  # an example may end wherever something is drawn

        def fresh(name: str) -> Shard:
            settings = LongTermSettings(max_memories_per_user=limit)
            shard = Shard(0, folder / name, "toy", 8, settings, LifecycleSettings())
            stack.callback(let_go, shard)
            return shard

        whole, cut = fresh("whole"), fresh("cut")
        for user in WHO:  # whoever was asked about is kept up to date
            assert (whole.memories_of(user), cut.memories_of(user)) == ((), ())
        whole.apply(events, vectors, START)
        start = 0
        while start < len(events):
            end = start + data.draw(st.integers(1, 6))
            cut.apply(events[start:end], vectors, START)
            if data.draw(st.booleans()):
                cut.close()
                if data.draw(st.booleans()):
                    lose(folder / "cut")
                cut = fresh("cut")
            start = data.draw(st.integers(start, end)) if data.draw(st.booleans()) else end
            if start < end <= len(events):  # what is read again is read to its end
                cut.apply(events[start:end], vectors, START)
                start = end
        ends = []
        for shard, name in ((whole, "whole"), (cut, "cut")):
            cosines = [
                shard.similarities(user, vector, shard.memories_of(user)).tolist()
                for user in WHO
                for vector in VECTORS
            ]
            assert shard.in_step()
            at_hand = [shard.memories_of(user) for user in WHO]
            shard.close()
            read_again = fresh(name)
            assert [read_again.memories_of(user) for user in WHO] == at_hand
            read_again.close()
            rows = {what: sorted(map(repr, table(folder / name, sql))) for what, sql in HELD.items()}
            stored = sorted((seq, vector.tolist()) for seq, vector in stored_in(folder / name).items())
            ends.append({"cosines": cosines, "stored": stored, **rows})
        assert ends[0] == ends[1]
