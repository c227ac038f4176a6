"""When a shard seals what is new, how it makes up for old segments, and whose rows it reads by the index."""

from __future__ import annotations

import errno
import logging
import shutil
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from typing import Literal

import pytest

from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories import mending
from tables.memories import shard as module
from tables.memories.shard import Shard
from tables.vectors import merging, segmented
from tables.vectors.index import cell_of
from tables.vectors.manifest import Manifest, write_manifest
from tables.vectors.segmented import SegmentedIndex
from tests.support.died import died
from tests.support.making import START, axis, promotion
from tests.support.segments import copied, indexed, lose, put_back
from tests.tables.memories.test_shard import apply, forget, placed, texts

Open = Callable[[], Shard]


@pytest.fixture
def reopen(tmp_path: Path) -> Open:
    return lambda: Shard(0, tmp_path, "toy", 8, LongTermSettings(), LifecycleSettings())


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any index is a large one."""
    monkeypatch.setattr(segmented, "SMALL", 0)


def more(shard: Shard, *users: int) -> None:
    """A memory more for each of these users."""
    placed(shard, *((promotion("x", "a", user=f"user-{user}"), axis(0)) for user in users))


class Died(BaseException):
    """The process is gone: nothing catches it."""


def saved(folder: Path) -> int:
    """How many vectors the segments hold."""
    return len(indexed(folder, 8))


def test_a_small_index_is_written_whenever_it_changed(reopen: Open, tmp_path: Path) -> None:
    shard = reopen()
    for users in range(1, 4):
        more(shard, users)
        shard.save()
        assert saved(tmp_path) == users
    shard.close()


@pytest.mark.usefixtures("large")
def test_a_large_index_is_written_when_a_tenth_of_it_is_new(reopen: Open, tmp_path: Path) -> None:
    """What went is gone from the file at once."""
    shard, gone = reopen(), promotion("1", "a")
    apply(shard, gone)
    more(shard, *range(28))
    shard.save()
    more(shard, 28)
    shard.save()
    assert saved(tmp_path) == 29
    apply(shard, forget(gone.memory_id))
    assert saved(tmp_path) == 28
    shard.save()
    assert saved(tmp_path) == 28
    more(shard, 29, 30, 31)
    shard.save()
    assert saved(tmp_path) == 32
    shard.close()


@pytest.mark.usefixtures("large")
def test_a_small_change_of_a_large_index_is_put_off_for_an_hour_of_minutes(reopen: Open, tmp_path: Path) -> None:
    """Where nothing changed there is nothing to put off."""
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
    shard.close()
    lose(tmp_path)
    shard = reopen()
    shard.save()
    assert saved(tmp_path) == 20
    shard.close()


def test_an_empty_shard_has_no_file(reopen: Open, tmp_path: Path) -> None:
    shard = reopen()
    shard.save()
    shard.close()
    assert copied(tmp_path) == {}


def test_a_rebuilding_tells_how_far_it_is(
    reopen: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is told where nothing is missing."""
    shard = reopen()
    more(shard, *range(5))
    shard.close()
    monkeypatch.setattr(mending, "_AT_A_TIME", 1)
    monkeypatch.setattr(module, "_TOLD_ROWS", 2)
    with caplog.at_level(logging.INFO, logger="tables.memories.shard"):
        reopen().close()
        assert caplog.messages == []
        lose(tmp_path)
        reopen().close()
    assert caplog.messages == [f"shard 0: {done} of 5 missing vectors added to the index" for done in (2, 4, 5)]


@pytest.mark.slow
@pytest.mark.parametrize("room", [True, False], ids=["room", "full"])
def test_much_that_is_missing_goes_into_one_segment(
    reopen: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, room: bool
) -> None:
    """Each vector under its own number, whatever order they lie in; a disk that is full has them in memory."""
    shard = reopen()
    given = [
        (promotion(str(number), str(number), user=f"user-{number % 5}"), axis(number % 8)) for number in range(30)
    ]
    placed(shard, *given)
    apply(shard, *(forget(memory.memory_id, memory.user_id) for memory, _ in given[::7]))
    shard.close()
    lose(tmp_path)
    monkeypatch.setattr(segmented, "_SEAL_BYTES", 4 * 4 * 8)
    if not room:
        monkeypatch.setattr(merging, "write", no_room)
    shard = reopen()
    index = shard.index
    assert isinstance(index, SegmentedIndex)
    assert (len(index.segments), index.unsealed) == ((1, 0) if room else (0, len(index)))
    left = [(memory, vector) for place, (memory, vector) in enumerate(given) if place % 7]
    assert len(index) == len(left)
    for user in range(5):
        memories = shard.memories_of(f"user-{user}")
        vectors = {memory.memory_id: vector for memory, vector in left}
        found = [shard.similarities(f"user-{user}", vectors[memory.id], [memory])[0] for memory in memories]
        assert found == [1.0] * len(memories)
    monkeypatch.undo()
    shard.close()
    caplog.clear()  # by the error that was logged it keeps the stack in which the file of vectors is mapped


def no_room(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


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


@pytest.mark.slow
@pytest.mark.parametrize("restored", ["catalog.duckdb", "segments.json"])
def test_an_older_copy_of_one_file_takes_no_memory_for_another(
    reopen: Open,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    restored: Literal["catalog.duckdb", "segments.json"],
) -> None:
    """The numbers of the newer one are those of other memories. An index of one save ago only lacks some."""
    shard = reopen()
    apply(shard, promotion("0", "a"))
    shard.close()
    backup = copied(tmp_path)
    shutil.copy(tmp_path / restored, tmp_path / "backup")
    shard = reopen()
    apply(shard, promotion("1", "b"))
    shard.close()
    if restored == "segments.json":
        put_back(tmp_path, backup)
    shutil.copy(tmp_path / "backup", tmp_path / restored)
    shard = reopen()
    told = "shard 0: segments.json does not belong to this catalog: its segments are rebuilt" in caplog.messages
    assert told == (restored == "catalog.duckdb")
    apply(shard, promotion("3", "c"))
    died(shard)
    shard = reopen()
    assert own_cosines(shard) == [1] * (2 if restored == "catalog.duckdb" else 3)
    assert shard.in_step()
    shard.close()


def test_a_file_of_another_shard_is_not_believed(reopen: Open, tmp_path: Path) -> None:
    for place, said in (("other", "5"), ("mine", "2")):
        shard = Shard(0, tmp_path / place, "toy", 8, LongTermSettings(), LifecycleSettings())
        apply(shard, promotion(said, "a"))
        shard.close()
    put_back(tmp_path / "mine", copied(tmp_path / "other"))
    shard = Shard(0, tmp_path / "mine", "toy", 8, LongTermSettings(), LifecycleSettings())
    assert own_cosines(shard) == [1]
    shard.close()


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["before it is written", "after it is written"])
def test_a_save_that_a_crash_cuts_off_costs_no_rebuilding(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fails: str
) -> None:
    """However often: the manifest before it fits, and so does the new one."""
    shard = reopen()
    apply(shard, promotion("0", "a"))
    shard.save()
    write = write_manifest

    def cut_off(folder: Path, manifest: Manifest) -> None:
        if fails == "after it is written":
            write(folder, manifest)
        raise Died

    for number in (1, 2, 3):
        monkeypatch.setattr(segmented, "write_manifest", cut_off)
        apply(shard, promotion(str(number), str(number)))
        with pytest.raises(Died):
            shard.save()
        monkeypatch.undo()
        died(shard)
        shard = reopen()
        assert shard.in_step()
    assert own_cosines(shard) == [1] * 4
    assert [message for message in caplog.messages if "rebuilt" in message or "damaged" in message] == []
    shard.close()
