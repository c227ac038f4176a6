"""A shard applies events once, and finds its way back after a crash."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import EmbeddingMismatch, ShardLocked
from schemas.events import Forget, ForgetUser, LongTermEvent, Pin, Promotion, Touch
from schemas.memories import State
from schemas.settings import LifecycleSettings, LongTermSettings
from streams.rules.lifecycle import DAY_MS, score_of, state_of
from tables.shard import Shard
from tests.making import START, axis, memory_of, promotion

Open = Callable[[], Shard]


@pytest.fixture
def reopen(tmp_path: Path) -> Open:
    return lambda: Shard(0, tmp_path / "0", "toy", 8, LongTermSettings())


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
    """Stored or of the same batch: one row, the higher importance, both sources."""
    shard = reopen()
    apply(shard, promotion("x", "a"), promotion("x", "b", importance=95), place=1)
    apply(shard, promotion("x", "c"), place=1)
    (memory,) = shard.memories_of("u")
    assert (memory.message_ids, memory.importance) == (("a", "b", "c"), 95)
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
    index = tmp_path / "0" / "vectors.faiss"
    shard = reopen()
    apply(shard, promotion("1", "a"))
    shard.save()
    older = index.read_bytes()
    apply(shard, promotion("2", "b"), promotion("3", "c"))
    shard.close()
    if damage == "missing":
        index.unlink()
    else:
        index.write_bytes(older if damage == "older" else index.read_bytes()[:1000])
    shard = reopen()
    memories = shard.memories_of("u")
    assert shard.similarities("u", axis(3), memories).tolist() == [0, 0, 1]
    shard.close()


def test_another_model_is_refused(reopen: Open, tmp_path: Path) -> None:
    reopen().close()
    with pytest.raises(EmbeddingMismatch, match="reembed"):
        Shard(0, tmp_path / "0", "other", 8, LongTermSettings())


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
    apply(shard, promotion("1", "a"), promotion("2", "b", at=START + 60 * DAY_MS))
    now = START + 60 * DAY_MS
    shard.recompute(now, lifecycle)
    shard.recompute(now, lifecycle)
    (transition,) = shard.unpublished()
    assert (transition.from_, transition.to) == ("active", "deprecated")
    assert [len(m.meta.get("transitions", [])) for m in shard.memories_of("u")] == [1, 0]
    shard.mark_published(1)
    assert shard.unpublished() == []
    assert shard.state_counts(now, lifecycle) == {State.ACTIVE: 1, State.COLD: 0, State.DEPRECATED: 1}
    shard.close()


@given(
    importance=st.floats(0, 100),
    days=st.one_of(st.floats(-10, 400), st.sampled_from([7.0, 37.0])),
    pinned=st.booleans(),
)
def test_the_sql_and_the_rule_agree(importance: float, days: float, pinned: bool) -> None:
    """tables/sql/lifecycle.sql and streams/rules/lifecycle.py are one formula."""
    import duckdb

    from tables.migrations import statement

    lifecycle = LifecycleSettings()
    now = START + int(days * DAY_MS)
    db = duckdb.connect(":memory:")
    db.execute(statement("lifecycle"))
    row = db.execute(
        "SELECT score_of($i::DOUBLE, $p, $at, $now, 7.0, 30.0) AS s, state_of(s, 70.0, 30.0)",
        {"i": importance, "p": pinned, "at": START, "now": now},
    ).fetchone()
    db.close()

    memory = memory_of(importance, pinned)
    assert row is not None
    assert row[0] == pytest.approx(score_of(memory, now, lifecycle))
    assert row[1] == state_of(row[0], lifecycle).value
