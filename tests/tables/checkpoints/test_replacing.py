"""A restored shard takes the place of what is on the disk, and of nothing that another worker has made there."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import ShardLocked
from tables.checkpoints.replacing import position_of, replace_shard, take_up
from tables.database.shard_info import InfoTable, ShardInfo
from tables.memories.catalog.catalog_file import CatalogFile
from tests.support.locks import held_elsewhere


def shard(folder: Path, position: int) -> Path:
    file = CatalogFile(folder / "catalog.duckdb", 3)
    file.db.execute("CREATE TABLE shard_info (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL)")
    InfoTable(file.db).write(ShardInfo(position=position))
    file.close()
    return folder


@pytest.fixture
def restored(tmp_path: Path) -> Path:
    return shard(tmp_path / "restored", 10)


@pytest.mark.parametrize("before", [None, 5])
def test_it_takes_the_place_of_what_was_looked_at(tmp_path: Path, restored: Path, before: int | None) -> None:
    place, aside = tmp_path / "shards" / "3", tmp_path / "aside"
    if before is not None:
        shard(place, before)
    replace_shard(3, restored, place, aside, position=before)
    assert position_of(place) == 10
    assert [restored.exists(), aside.exists()] == [False, False]


@pytest.mark.parametrize("before", [None, 5])
def test_what_another_worker_has_made_there_meanwhile_stays(
    tmp_path: Path, restored: Path, before: int | None
) -> None:
    place = shard(tmp_path / "3", 7)
    with pytest.raises(ShardLocked, match="meanwhile"):
        replace_shard(3, restored, place, tmp_path / "aside", position=before)
    assert [position_of(place), position_of(restored)] == [7, 10]


def test_what_another_worker_has_open_stays(tmp_path: Path, restored: Path) -> None:
    place = shard(tmp_path / "3", 5)
    with held_elsewhere(place / "catalog.lock"), pytest.raises(ShardLocked, match="another process has"):
        replace_shard(3, restored, place, tmp_path / "aside", position=5)
    assert position_of(place) == 5


def test_what_another_worker_begins_in_that_moment_stays(
    tmp_path: Path, restored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, rename = tmp_path / "3", Path.rename

    def raced(self: Path, target: Path) -> Path:
        shard(place, 1)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", raced)
    with pytest.raises(ShardLocked, match="has just created"):
        replace_shard(3, restored, place, tmp_path / "aside", position=None)
    assert position_of(place) == 1


@pytest.mark.parametrize("there", [True, False])
def test_what_a_killed_process_set_aside_comes_back_where_nothing_is(tmp_path: Path, there: bool) -> None:
    aside, place = shard(tmp_path / "3.former", 5), tmp_path / "3"
    if there:
        shard(place, 7)
    take_up(aside, place)
    assert (position_of(place), aside.exists()) == (7 if there else 5, False)
    take_up(aside, place)
    assert position_of(place) == (7 if there else 5)
