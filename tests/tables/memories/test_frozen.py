"""A shard's files stay what they were while they are copied, and the shard works on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest

from schemas.events import Archive, Forget, ForgetUser, Restore
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.frozen import Frozen
from tables.memories.shard import Shard
from tests.support.making import START, axis, promotion
from tests.tables.commands import event

DIMENSION = 8


def opened(folder: Path) -> Shard:
    return Shard(0, folder, "toy", DIMENSION, LongTermSettings(near_copy=1.0), LifecycleSettings())


def tell(shard: Shard, first: int, last: int) -> None:
    """So many memories, each of a user of its own."""
    said = [promotion(f"text {n}", f"m{n}", user=f"u{n}") for n in range(first, last)]
    vectors = {one.event_id: axis(n % DIMENSION) for n, one in enumerate(said)}
    shard.apply(said, vectors, START, last)


def copied(frozen: Frozen, folder: Path) -> Path:
    """What a checkpoint reads of the files: so many bytes of each."""
    folder.mkdir()
    for file in frozen.files:
        (folder / Path(file.name).name).write_bytes(file.path.read_bytes()[: file.length])
    return folder


@pytest.mark.slow
def test_a_copy_that_is_made_while_batches_are_written_is_the_state_at_the_freezing(tmp_path: Path) -> None:
    """However much is written meanwhile: more than DuckDB's log would take otherwise."""
    shard = opened(tmp_path / "0")
    tell(shard, 0, 50)
    shard.apply([event(Archive, "u3", memory_id=promotion("", "m3", user="u3").memory_id)], {}, START, 51)
    frozen = shard.freeze()
    shard._catalog._db.execute("CREATE TABLE bulk AS SELECT range AS n, md5(range::VARCHAR) AS s FROM range(400000)")
    shard._catalog._db.execute("DROP TABLE bulk")
    tell(shard, 50, 120)
    folder = copied(frozen, tmp_path / "copy")
    assert (frozen.position, frozen.held.broken) == (51, False)
    shard.thaw(frozen)
    assert shard.count() == 119
    shard.close()
    copy = opened(folder)
    assert (copy.count(), copy.position(), copy.in_step()) == (49, 51, True)
    held = copy.held("u7")
    assert copy.cosines("u7", axis(7), copy.rows.candidates(held)).tolist() == [1.0]
    copy.close()


def test_what_is_archived_meanwhile_has_its_vector_in_the_copy(tmp_path: Path) -> None:
    """The log archives it again in the copy, and takes it from there."""
    shard = opened(tmp_path / "0")
    tell(shard, 0, 10)
    frozen = shard.freeze()
    gone = promotion("", "m3", user="u3").memory_id
    command = event(Archive, "u3", memory_id=gone)
    shard.apply([command], {}, START, 11)
    copy = opened(copied(frozen, tmp_path / "copy"))
    assert not frozen.held.broken
    shard.thaw(frozen)
    assert not (vectors_file(tmp_path / "0")[3].any())
    copy.apply([command], {}, START, 11)
    copy.apply([event(Restore, "u3", memory_id=gone)], {}, START, 12)
    assert copy.similarities("u3", axis(3), copy.memories_of("u3")).tolist() == [1.0]
    for one in (shard, copy):
        one.close()


def vectors_file(folder: Path) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    (path,) = folder.glob("vectors-*.f32")
    return np.frombuffer(path.read_bytes()[4096:], np.float32).reshape(-1, DIMENSION)


@pytest.mark.parametrize(
    "command",
    [
        event(ForgetUser, "u3", START + 1),
        event(Forget, "u3", memory_id=promotion("", "m3", user="u3").memory_id),
    ],
    ids=["a-user", "a-memory"],
)
def test_forgetting_breaks_the_hold(tmp_path: Path, command: ForgetUser | Forget) -> None:
    """Its bytes go at once, and what was being copied is given up."""
    shard = opened(tmp_path / "0")
    tell(shard, 0, 10)
    frozen = shard.freeze()
    shard.apply([command], {}, START, 11)
    assert frozen.held.broken
    assert not vectors_file(tmp_path / "0")[3].any()
    shard.thaw(frozen)
    shard.close()


@pytest.mark.parametrize("end", [Shard.close, Shard._erase, Shard.freeze], ids=["closing", "erasing", "another"])
def test_whatever_changes_the_files_breaks_the_hold(tmp_path: Path, end: Callable[[Shard], object]) -> None:
    shard = opened(tmp_path / "0")
    tell(shard, 0, 3)
    frozen = shard.freeze()
    end(shard)
    assert frozen.held.broken
    if end is not Shard.close:
        shard.close()


def test_after_the_thawing_the_log_is_written_into_the_file_again(tmp_path: Path) -> None:
    shard = opened(tmp_path / "0")
    frozen = shard.freeze()
    threshold = "SELECT current_setting('checkpoint_threshold')"
    ((held,),) = shard._catalog._db.execute(threshold).fetchall()
    shard.thaw(frozen)
    ((thawed,),) = shard._catalog._db.execute(threshold).fetchall()
    assert (held, thawed) == ("909.4 TiB", "122.0 MiB")
    shard.close()


@pytest.mark.slow
def test_a_copy_that_is_made_at_any_moment_of_the_hold_is_the_same(tmp_path: Path) -> None:
    shard = opened(tmp_path / "0")
    tell(shard, 0, 20)
    frozen = shard.freeze()
    before = copied(frozen, tmp_path / "before")
    for start in range(20, 120, 20):
        tell(shard, start, start + 20)
        shard.recompute(START + start * 86_400_000, LifecycleSettings())
        shard.save()
    after = copied(frozen, tmp_path / "after")
    assert not frozen.held.broken
    rows = []
    for folder in (before, after):
        with duckdb.connect(str(folder / "catalog.duckdb"), read_only=True) as db:
            rows.append(db.execute("SELECT id, state, importance FROM memories ORDER BY seq").fetchall())
    assert rows[0] == rows[1]
    assert len(rows[0]) == 20
    shutil.rmtree(after)
    shard.close()
