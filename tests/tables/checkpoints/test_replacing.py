"""A restored shard takes the place of what is on the disk, and of nothing that another worker has made there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ShardLocked
from tables.checkpoints import replacing
from tables.checkpoints.replacing import UNREADABLE, position_of, replace_shard, take_up, take_up_all
from tables.database.shard_info import InfoTable, ShardInfo
from tables.memories.catalog.catalog_file import CatalogFile
from tables.paths import synced
from tests.support.locks import held_elsewhere
from tests.tables.checkpoints.made import content

#: Opens the catalog of a shard in a process of its own, as another worker does.
OPENING = """
import sys
from pathlib import Path
from schemas.errors import ShardLocked
from tables.memories.catalog.catalog_file import CatalogFile
try:
    CatalogFile(Path(sys.argv[1]) / "catalog.duckdb", 3).close()
    print("opened")
except ShardLocked:
    print("locked")
"""


def shard(folder: Path, position: int) -> Path:
    file = CatalogFile(folder / "catalog.duckdb", 3)
    file.db.execute("CREATE TABLE shard_info (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL)")
    InfoTable(file.db).write(ShardInfo(position=position))
    file.close()
    return folder


@pytest.fixture
def restored(tmp_path: Path) -> Path:
    return shard(tmp_path / "restored", 10)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "shards" / "3"


def beside(place: Path) -> set[str]:
    return {path.name for path in place.parent.iterdir()}


@pytest.mark.parametrize("before", [None, 5])
def test_it_takes_the_place_of_what_was_looked_at(place: Path, restored: Path, before: int | None) -> None:
    if before is not None:
        shard(place, before)
    replace_shard(3, restored, place, position=before)
    assert position_of(place) == 10
    assert not restored.exists()
    assert beside(place) == {"3", "3.lock"}


@pytest.mark.parametrize("before", [None, 5])
def test_what_another_worker_has_made_there_meanwhile_stays(place: Path, restored: Path, before: int | None) -> None:
    shard(place, 7)
    with pytest.raises(ShardLocked, match="meanwhile"):
        replace_shard(3, restored, place, position=before)
    assert [position_of(place), position_of(restored)] == [7, 10]


def test_what_another_worker_has_open_stays(place: Path, restored: Path) -> None:
    shard(place, 5)
    with held_elsewhere(place.with_name("3.lock")), pytest.raises(ShardLocked, match="another process has"):
        replace_shard(3, restored, place, position=5)
    assert position_of(place) == 5


@pytest.mark.parametrize("before", [None, 5])
def test_nobody_opens_it_until_the_restored_one_is_in_its_place(
    place: Path, restored: Path, before: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing is at its place: a worker that opened it then would begin with an empty shard."""
    if before is not None:
        shard(place, before)
    said, rename = list[str](), Path.rename

    def open_it() -> None:
        words = [sys.executable, "-c", OPENING, str(place)]
        said.append(subprocess.run(words, capture_output=True, check=True, text=True).stdout.strip())

    def watched(self: Path, target: Path) -> Path:
        open_it()
        moved = rename(self, target)
        open_it()
        return moved

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", watched)
        replace_shard(3, restored, place, position=before)
    assert set(said) == {"locked"}
    assert position_of(place) == 10


@pytest.mark.parametrize("failing", [1, 2])
def test_a_disk_that_fails_leaves_what_was_there(
    place: Path, restored: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    shard(place, 5)
    calls, rename = count(1), Path.rename

    def fails(self: Path, target: Path) -> Path:
        if next(calls) == failing:
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="Input/output"):
        replace_shard(3, restored, place, position=5)
    assert [position_of(place), position_of(restored)] == [5, 10]
    assert beside(place) == {"3", "3.lock"}


class Killed(BaseException):
    """Nothing is cleaned up after it."""


def killed_before(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Kill before this rename, sync or removal; a removal is cut off after its first file. Counts them."""
    counted = count(1)

    def steps(of: Callable[..., Any]) -> Callable[..., Any]:
        def one(*given: Any, **named: Any) -> Any:
            if next(counted) == step:
                if of is rmtree and (files := [path for path in given[0].rglob("*") if path.is_file()]):
                    files[0].unlink()
                raise Killed
            return of(*given, **named)

        return one

    rmtree = shutil.rmtree
    monkeypatch.setattr(Path, "rename", steps(Path.rename))
    monkeypatch.setattr(shutil, "rmtree", steps(shutil.rmtree))
    monkeypatch.setattr(replacing, "synced", steps(synced))
    return counted


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("step", range(1, 7))
def test_a_process_that_is_killed_at_any_step_leaves_one_of_the_two(
    place: Path, restored: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool, step: int
) -> None:
    """The next start has it with all its files."""
    shard(place, 5)
    (place / "vectors-1.f32").write_bytes(b"vectors")
    if damaged:
        (place / "catalog.duckdb").write_bytes(b"damaged")
    before, after = content(place), content(restored)
    expected = UNREADABLE if damaged else 5
    with monkeypatch.context() as patch:
        counted = killed_before(step, patch)
        try:
            replace_shard(3, restored, place, position=expected, keep_damaged=damaged)
            assert next(counted) <= step, "it has no more steps"
        except Killed:
            pass
    take_up_all(place.parent)
    assert content(place) == (before if step <= 2 else after)
    assert beside(place) <= {"3", "3.lock", "3.damaged"}
    if restored.exists():
        replace_shard(3, restored, place, position=expected, keep_damaged=damaged)
    assert content(place) == after


def test_a_former_shard_that_appears_is_looked_at_again(place: Path, restored: Path) -> None:
    """Another process was killed since it was asked what is there."""
    shard(place.with_name("3.former"), 12)
    with pytest.raises(ShardLocked, match="meanwhile"):
        replace_shard(3, restored, place, position=None)
    assert position_of(place) == 12


@pytest.mark.parametrize("there", [True, False])
def test_what_a_killed_process_set_aside_comes_back_where_nothing_is(place: Path, there: bool) -> None:
    former = shard(place.with_name("3.former"), 5)
    if there:
        shard(place, 7)
    with held_elsewhere(place.with_name("3.lock")):
        take_up(3, place)
        assert former.exists(), "another process is at it"
    take_up(3, place)
    assert (position_of(place), former.exists()) == (7 if there else 5, False)
    take_up(3, place)
    assert position_of(place) == (7 if there else 5)
