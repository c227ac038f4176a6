"""When a shard writes its index's file, how it makes up for an old one, and whose rows it reads by the index."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from typing import Literal

import pytest

from schemas.errors import DataDirError
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.shard import shard as module
from tables.shard.shard import Shard
from tables.vectors.index import Stamp, VectorIndex, cell_of
from tests.support.making import START, axis, promotion
from tests.tables.shard.test_shard import apply, forget, placed, texts

Open = Callable[[], Shard]


@pytest.fixture
def reopen(tmp_path: Path) -> Open:
    return lambda: Shard(0, tmp_path, "toy", 8, LongTermSettings(), LifecycleSettings())


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any index is a large one."""
    monkeypatch.setattr(module, "_SMALL_INDEX", 0)


def more(shard: Shard, *users: int) -> None:
    """A memory more for each of these users."""
    placed(shard, *((promotion("x", "a", user=f"user-{user}"), axis(0)) for user in users))


def saved(folder: Path) -> int:
    """How many vectors the file holds."""
    index = VectorIndex.load(folder / "vectors.faiss", 8)
    return 0 if index is None else len(index)


def test_a_small_index_is_written_whenever_it_changed(reopen: Open, tmp_path: Path) -> None:
    shard = reopen()
    for users in range(1, 4):
        more(shard, users)
        shard.save()
        assert saved(tmp_path) == users
    shard.close()


@pytest.mark.usefixtures("large")
def test_a_large_index_is_written_when_a_tenth_of_it_changed(reopen: Open, tmp_path: Path) -> None:
    """Vectors that went count as those that came."""
    shard, gone = reopen(), promotion("1", "a")
    apply(shard, gone)
    more(shard, *range(28))
    shard.save()
    more(shard, 28)
    shard.save()
    assert saved(tmp_path) == 29
    apply(shard, forget(gone.memory_id))
    shard.save()
    assert saved(tmp_path) == 29
    more(shard, 29)
    shard.save()
    assert saved(tmp_path) == 30
    shard.close()


@pytest.mark.usefixtures("large")
def test_a_small_change_of_a_large_index_is_put_off_for_an_hour_of_minutes(reopen: Open, tmp_path: Path) -> None:
    """So a forgotten memory's vector leaves the file, too; where nothing changed there is nothing to put off."""
    shard = reopen()
    more(shard, *range(20))
    shard.save()
    for _ in range(100):
        shard.save()
    more(shard, 20)
    for _ in range(60):
        shard.save()
    assert saved(tmp_path) == 20
    shard.save()
    assert saved(tmp_path) == 21
    shard.close()


@pytest.mark.usefixtures("large")
def test_closing_writes_whatever_changed(reopen: Open, tmp_path: Path) -> None:
    shard = reopen()
    more(shard, *range(20))
    shard.save()
    more(shard, 20)
    shard.close()
    assert saved(tmp_path) == 21


@pytest.mark.usefixtures("large")
def test_a_file_that_was_deleted_is_written_again(reopen: Open, tmp_path: Path) -> None:
    shard = reopen()
    more(shard, *range(20))
    shard.save()
    (tmp_path / "vectors.faiss").unlink()
    shard.save()
    assert saved(tmp_path) == 20
    shard.close()


def test_an_empty_shard_has_no_file(reopen: Open, tmp_path: Path) -> None:
    shard = reopen()
    shard.save()
    shard.close()
    assert not (tmp_path / "vectors.faiss").exists()


def test_a_rebuilding_tells_how_far_it_is(
    reopen: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is told where nothing is missing."""
    shard = reopen()
    more(shard, *range(5))
    shard.close()
    monkeypatch.setattr(module, "_REBUILD_ROWS", 1)
    monkeypatch.setattr(module, "_TOLD_ROWS", 2)
    with caplog.at_level(logging.INFO, logger="tables.shard.shard"):
        reopen().close()
        assert caplog.messages == []
        (tmp_path / "vectors.faiss").unlink()
        reopen().close()
    assert caplog.messages == [f"shard 0: {done} of 5 missing vectors added to the index" for done in (2, 4, 5)]


def test_users_who_share_a_cell_have_their_own_memories_alone(reopen: Open) -> None:
    """Oldest first, whichever came first, also when they are read from the catalog."""
    cell = cell_of("u")
    other = next(islice((name for name in map(str, count()) if cell_of(name) == cell), 1))
    shard = reopen()
    apply(shard, promotion("2", "b", at=START + 5), promotion("3", "c", user=other))
    apply(shard, promotion("1", "a", at=START + 1))
    shard.close()
    shard = reopen()
    assert (texts(shard), texts(shard, other), texts(shard, "nobody")) == (["1", "2"], ["3"], [])
    shard.close()


def own_cosines(shard: Shard) -> list[float]:
    """Of each of the user's memories with the vector that it was given."""
    memories = shard.memories_of("u")
    return [float(shard.similarities("u", axis(int(memory.text)), [memory])[0]) for memory in memories]


def ended(shard: Shard) -> None:
    """As a process that is killed: nothing is saved any more."""
    shard._catalog.close()


@pytest.mark.parametrize("restored", ["catalog.duckdb", "vectors.faiss"])
def test_an_older_copy_of_one_file_takes_no_memory_for_another(
    reopen: Open,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    restored: Literal["catalog.duckdb", "vectors.faiss"],
) -> None:
    """The numbers of the newer one are those of other memories. An index of one save ago only lacks some."""
    shard = reopen()
    apply(shard, promotion("0", "a"))
    shard.close()
    shutil.copy(tmp_path / restored, tmp_path / "backup")
    shard = reopen()
    apply(shard, promotion("1", "b"))
    shard.close()
    shutil.copy(tmp_path / "backup", tmp_path / restored)
    shard = reopen()
    told = "shard 0: vectors.faiss is not of this catalog and is rebuilt" in caplog.messages
    assert told == (restored == "catalog.duckdb")
    apply(shard, promotion("3", "c"))
    ended(shard)
    shard = reopen()
    assert own_cosines(shard) == [1] * (2 if restored == "catalog.duckdb" else 3)
    assert shard.in_step()
    shard.close()


def test_a_file_of_another_shard_is_not_believed(reopen: Open, tmp_path: Path) -> None:
    for place, said in (("other", "5"), ("mine", "2")):
        shard = Shard(0, tmp_path / place, "toy", 8, LongTermSettings(), LifecycleSettings())
        apply(shard, promotion(said, "a"))
        shard.close()
    shutil.copy(tmp_path / "other" / "vectors.faiss", tmp_path / "mine" / "vectors.faiss")
    shard = Shard(0, tmp_path / "mine", "toy", 8, LongTermSettings(), LifecycleSettings())
    assert own_cosines(shard) == [1]
    shard.close()


@pytest.mark.parametrize("fails", ["before it is written", "after it is written"])
def test_a_save_that_a_crash_cuts_off_costs_no_rebuilding(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fails: str
) -> None:
    """However often: the file before it fits, and so does the new one."""
    shard = reopen()
    apply(shard, promotion("0", "a"))
    shard.save()
    save = VectorIndex.save

    def cut_off(index: VectorIndex, path: Path, stamp: Stamp) -> None:
        if fails == "after it is written":
            save(index, path, stamp)
        raise DataDirError(path, "cut off")

    for number in (1, 2, 3):
        monkeypatch.setattr(VectorIndex, "save", cut_off)
        apply(shard, promotion(str(number), str(number)))
        with pytest.raises(DataDirError):
            shard.save()
        monkeypatch.undo()
    ended(shard)
    shard = reopen()
    assert own_cosines(shard) == [1] * 4
    assert [message for message in caplog.messages if "is rebuilt" in message] == []
    shard.close()
