"""A shard whose worker dies between any two steps of a write is whole when it is opened again."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.events import (
    Archive,
    Edit,
    Forget,
    Link,
    LongTermEvent,
    Pin,
    Promotion,
    Remember,
    Remove,
    Restore,
    Supersede,
    Touch,
)
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.shard import Shard
from tables.vectors.index import Vectors
from tables.vectors.manifest import segment_files
from tests.support.died import died
from tests.support.making import START, axis, leaning, promotion
from tests.support.segments import indexed, manifest_of
from tests.tables.commands import event
from tests.tables.memories.test_shard import HELD, table

Undisturbed = tuple[int, list[list[LongTermEvent]], dict[str, list[str]]]


class Died(BaseException):
    """The process is gone: nothing catches it."""


class Steps:
    """Counts steps, and dies before the one that is fatal."""

    def __init__(self, fatal: int | None = None) -> None:
        self.taken, self._fatal = 0, fatal

    def take(self) -> None:
        self.taken += 1
        if self.taken == self._fatal:
            raise Died

    def before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            self.take()
            return call(*given, **named)

        return counted


class Connection:
    """DuckDB's, where each statement is a step. Who is dead rolls nothing back."""

    def __init__(self, db: Any, steps: Steps) -> None:
        self._db, self._steps, self._dead = db, steps, False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._db, name)
        return self._step(found) if name in ("execute", "executemany") else found

    def _step(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            if self._dead:
                return None
            try:
                self._steps.take()
            except Died:
                self._dead = True
                raise
            return call(*given, **named)

        return counted


def batches() -> list[list[LongTermEvent]]:
    """Everything that a shard can be told, in batches of what goes together."""
    said = ("text 0", "text 1", "text 2", "Text 0!")
    one, two, three, copy = (promotion(text, f"m{n}", at=START + n) for n, text in enumerate(said))
    more = [promotion(f"more {n}", f"x{n}", at=START + 9 + n) for n in range(3)]
    link = event(Link, source_id=more[1].memory_id, target_id=more[2].memory_id)
    return [
        [one, two, event(Link, source_id=one.memory_id, target_id=two.memory_id)],
        [copy, three, event(Touch, memory_ids=[one.memory_id]), event(Pin, memory_id=two.memory_id)],
        [event(Edit, memory_id=one.memory_id, text="edited"), event(Archive, memory_id=three.memory_id)],
        [event(Restore, memory_id=three.memory_id), event(Archive, memory_id=two.memory_id)],
        [event(Remember, text="news", supersedes=[one.memory_id]), event(Remove, memory_id=two.memory_id)],
        [event(Supersede, memory_id=three.memory_id, by=one.memory_id), event(Forget, memory_id=three.memory_id)],
        [*more, event(Archive, memory_id=more[0].memory_id), link],
    ]


def vectors_of(told: Sequence[Sequence[LongTermEvent]]) -> dict[uuid.UUID, Vectors]:
    texts = [
        one
        for batch in told
        for one in batch
        if isinstance(one, Promotion | Remember | Edit) and one.text is not None
    ]
    places = [axis(0), axis(1), leaning(0, 2, 0.97), *(axis(n) for n in range(2, 8)), leaning(1, 5, 0.8)]
    return {one.event_id: np.asarray(places[n], np.float32) for n, one in enumerate(texts)}


def opened(folder: Path) -> Shard:
    return Shard(0, folder, "toy", 8, LongTermSettings(max_memories_per_user=5), LifecycleSettings())


def through(shard: Shard, told: Sequence[Sequence[LongTermEvent]], steps: Steps) -> None:
    """Apply and save batch by batch, each part of it a step."""
    vectors = vectors_of(told)
    catalog, index = shard._catalog, shard.index
    for part in (catalog, catalog.ageing, catalog.archive, catalog._vectors):
        part._db = Connection(part._db, steps)  # type: ignore[assignment]
    for name in ("add", "remove", "tidy", "_swap", "_finish"):
        setattr(index, name, steps.before(getattr(index, name)))
    for batch in told:
        shard.apply(batch, vectors, START)
        shard.save()


def crash(shard: Shard) -> None:
    """What is left of a process that is gone: its files, unlocked."""
    raw = shard._catalog._db
    (raw._db if isinstance(raw, Connection) else raw).close()
    died(shard)


def rows(folder: Path) -> dict[str, list[str]]:
    return {what: sorted(map(repr, table(folder, sql))) for what, sql in HELD.items()}


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[int, list[list[LongTermEvent]], dict[str, list[str]]]:
    """How many steps there are, the events, and the rows that come of them."""
    told, steps, folder = batches(), Steps(), tmp_path_factory.mktemp("whole")
    shard = opened(folder)
    through(shard, told, steps)
    count = steps.taken
    assert shard.in_step()
    crash(shard)
    held = rows(folder)
    assert [what for what in HELD if not held[what]] == []
    return count, told, held


@pytest.mark.parametrize(
    ("first", "stride"), [(1, 64), *(pytest.param(1 + n, 16, marks=pytest.mark.slow) for n in range(16))]
)
def test_after_any_crash_point_catalog_and_index_agree_and_nothing_is_lost_or_doubled(
    undisturbed: Undisturbed, tmp_path: Path, first: int, stride: int
) -> None:
    """Whatever was acknowledged before: the batches are read again from their beginning, or from the last one."""
    count, told, held = undisturbed
    assert count > 100
    for fatal in range(first, count + 1, stride):
        folder = tmp_path / str(fatal)
        shard, steps = opened(folder), Steps(fatal)
        with pytest.raises(Died):
            through(shard, told, steps)
        crash(shard)
        shard = opened(folder)
        assert shard.in_step(), f"after step {fatal}"
        for batch in told:
            shard.apply(batch, vectors_of(told), START)
        assert shard.in_step()
        for user in ("u",):
            memories = shard.memories_of(user)
            stored = shard._catalog.vectors(np.array([memory.seq for memory in memories], np.int64))[1]
            own = [shard.similarities(user, vector, [m])[0] for m, vector in zip(memories, stored, strict=True)]
            assert own == pytest.approx(np.ones(len(own)), abs=1e-5)
        shard.close()
        assert rows(folder) == held, f"after step {fatal}"


def test_a_saved_index_is_whole_or_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash while the manifest is swapped leaves the one before; the segment that it does not name goes."""
    shard, one, two = opened(tmp_path), promotion("text 1", "a"), promotion("text 2", "b")
    shard.apply([one], {one.event_id: axis(1)}, START)
    shard.save()
    before = manifest_of(tmp_path).read_bytes()
    shard.apply([two], {two.event_id: axis(2)}, START)

    def die(*_: Any) -> None:
        raise Died

    monkeypatch.setattr(Path, "replace", die)
    with pytest.raises(Died):
        shard.save()
    monkeypatch.undo()
    crash(shard)
    assert manifest_of(tmp_path).read_bytes() == before
    assert indexed(tmp_path, 8) == [1]
    shard = opened(tmp_path)
    assert shard.in_step()
    assert len(segment_files(tmp_path)) == 1
    shard.close()
