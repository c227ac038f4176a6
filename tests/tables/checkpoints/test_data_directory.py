"""A data directory out of checkpoints: whole or not at all, and each partition no newer than was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from schemas.errors import CheckpointMismatch, DamagedCheckpoint, DataDirError, NoCheckpoint
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.data_directory import choice, restore_directory
from tables.partition_record import recorded_partitions
from tests.tables.checkpoints.made import content, facts, noise, snapshot, written


@dataclass
class Kept:
    """A store, and what each partition's files were at each moment."""

    checkpoints: Checkpoints
    folder: Path

    def take(self, partition: int, at: int, **files: bytes) -> None:
        files = files or {"shard__catalog_duckdb": noise(1_000, seed=at), "windows__000001_sst": noise(10, seed=at)}
        source = written(self.folder / f"{partition}-{at}", **files)
        self.checkpoints.take(snapshot(source, facts(partition=partition, at=at)))


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    store = tmp_path / "store"
    return Kept(Checkpoints(f"file://{store}", clock=lambda: 5.0), tmp_path / "sources")


def expected(partition: int, at: int) -> dict[str, bytes]:
    return {
        f"shards/{partition}/catalog.duckdb": noise(1_000, seed=at),
        f"windows/{partition}/000001.sst": noise(10, seed=at),
    }


def test_every_partition_is_there_as_of_its_newest(kept: Kept, tmp_path: Path) -> None:
    for partition, at in ((0, 1_000), (0, 2_000), (3, 1_500)):
        kept.take(partition, at)
    chosen = choice(kept.checkpoints)
    assert (chosen.partitions, chosen.without) == (8, [1, 2, 4, 5, 6, 7])
    done = restore_directory(kept.checkpoints, chosen, tmp_path / "data")
    assert content(tmp_path / "data") == {"partitions": b"8\n", **expected(0, 2_000), **expected(3, 1_500)}
    assert ([one.generation for one in done.taken], done.damaged) == ([2, 1], [])
    assert recorded_partitions(tmp_path / "data") == 8


def test_none_is_newer_than_what_was_asked_for(kept: Kept, tmp_path: Path) -> None:
    for at in (1_000, 2_000, 3_000):
        kept.take(0, at)
    restore_directory(kept.checkpoints, choice(kept.checkpoints, at=2_500), tmp_path / "data")
    assert content(tmp_path / "data") == {"partitions": b"8\n", **expected(0, 2_000)}


def test_where_a_partition_has_newer_ones_only_nothing_is_restored(kept: Kept) -> None:
    """With the others as of then, and this one empty, its users would have been forgotten."""
    kept.take(0, 1_000)
    kept.take(1, 2_000)
    with pytest.raises(NoCheckpoint, match=r"partition 1 is of 1970-01-01T00:00:02.000Z: ask for a later time"):
        choice(kept.checkpoints, at=1_500)
    with pytest.raises(NoCheckpoint, match=r"the oldest checkpoint at file://.* is of 1970-01-01T00:00:01"):
        choice(kept.checkpoints, at=500)
    assert set(choice(kept.checkpoints, at=1_500, wanted=[0]).generations) == {0}


def test_what_is_not_there_is_said(kept: Kept) -> None:
    with pytest.raises(NoCheckpoint, match=r"check checkpoints\.url"):
        choice(kept.checkpoints)
    kept.take(0, 1_000)
    for partition in (1, 8):
        with pytest.raises(NoCheckpoint, match=f"no checkpoint of partition {partition}"):
            choice(kept.checkpoints, wanted=[partition])


def test_two_numbers_of_partitions_are_not_mixed(kept: Kept, tmp_path: Path) -> None:
    kept.take(0, 2_000)
    source = written(tmp_path / "other", shard__catalog_duckdb=b"x")
    other = snapshot(source, facts(partition=1, at=1_000))
    kept.checkpoints.take(other._replace(facts=facts(partition=1, at=1_000, partitions=4)))
    with pytest.raises(CheckpointMismatch, match="distributed over 4 partitions, and those of partition 0 over 8"):
        choice(kept.checkpoints)


def test_a_folder_with_something_in_it_is_refused_and_left_alone(kept: Kept, tmp_path: Path) -> None:
    kept.take(0, 1_000)
    data = written(tmp_path / "data", mine_txt=b"mine")
    with pytest.raises(DataDirError, match="it is not empty"):
        restore_directory(kept.checkpoints, choice(kept.checkpoints), data)
    assert content(data) == {"mine.txt": b"mine"}


def test_what_is_broken_off_leaves_nothing_and_is_done_again(kept: Kept, tmp_path: Path) -> None:
    """An empty folder stays, which may be where a disk is mounted. A kill leaves the draft, which is no data."""
    kept.take(0, 1_000)
    kept.take(1, 1_000)
    data, chosen = tmp_path / "data", choice(kept.checkpoints)

    def broken(one: object, done: int, whole: int) -> None:
        if done == whole:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore_directory(kept.checkpoints, chosen, data, broken)
    assert content(data) == {}
    written(data, restoring__0__shard__catalog_duckdb=b"half")
    restore_directory(kept.checkpoints, chosen, data)
    assert content(data) == {"partitions": b"8\n", **expected(0, 1_000), **expected(1, 1_000)}


def test_of_a_damaged_generation_the_one_before_it_is_taken(kept: Kept, tmp_path: Path) -> None:
    for at in (1_000, 2_000):
        kept.take(0, at)
    newest = kept.checkpoints.newest(0)
    assert newest is not None
    damage(tmp_path / "store" / "0" / "packs" / newest.packs[-1].name)
    chosen = choice(kept.checkpoints)
    done = restore_directory(kept.checkpoints, chosen, tmp_path / "data")
    assert content(tmp_path / "data") == {"partitions": b"8\n", **expected(0, 1_000)}
    assert ([one.generation for one in done.taken], [one.generation for one in done.damaged]) == ([1], [2])


def test_where_none_is_whole_nothing_is_restored(kept: Kept, tmp_path: Path) -> None:
    kept.take(0, 1_000)
    for pack in (tmp_path / "store" / "0" / "packs").iterdir():
        damage(pack)
    with pytest.raises(DamagedCheckpoint):
        restore_directory(kept.checkpoints, choice(kept.checkpoints), tmp_path / "data")
    assert content(tmp_path / "data") == {}


def damage(path: Path) -> None:
    held = bytearray(path.read_bytes())
    held[len(held) // 2] ^= 1
    path.write_bytes(held)
