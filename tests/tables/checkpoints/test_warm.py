"""Warm copies are whole, as new as their checkpoint, and moved into place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from schemas.errors import ShardLocked
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.warm import WarmCopies
from tests.tables.checkpoints.made import content, noise, snapshot, written


def nobody(done: int, whole: int) -> None:
    """Is told how far it is."""


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(f"file://{tmp_path / 'store'}")


@pytest.fixture
def copies(tmp_path: Path, checkpoints: Checkpoints) -> WarmCopies:
    return WarmCopies(tmp_path / "warm", checkpoints)


def test_a_copy_is_refreshed_when_a_checkpoint_appears(
    checkpoints: Checkpoints, copies: WarmCopies, tmp_path: Path
) -> None:
    assert copies.refresh(3, None, nobody) is None
    state = written(tmp_path / "state", shard__catalog_duckdb=noise(600_000))
    checkpoints.take(snapshot(state))
    first = copies.refresh(3, None, nobody)
    assert first is not None
    assert copies.refresh(3, first, nobody) is first
    written(state, shard__catalog_duckdb=noise(700_000, 2))
    checkpoints.take(snapshot(state))
    second = copies.refresh(3, first, nobody)
    assert second is not None
    assert copies.all() == {3: second}
    assert content(second.files) == content(state)


def test_a_refresh_that_is_broken_off_leaves_the_former_copy(
    checkpoints: Checkpoints, copies: WarmCopies, tmp_path: Path
) -> None:
    state = written(tmp_path / "state", shard__catalog_duckdb=noise(600_000))
    checkpoints.take(snapshot(state))
    first = copies.refresh(3, None, nobody)
    checkpoints.take(snapshot(written(state, shard__catalog_duckdb=noise(700_000, 2))))

    def stop(done: int, whole: int) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        copies.refresh(3, first, stop)
    assert copies.all() == {3: first}
    assert sorted(path.name for path in (tmp_path / "warm").iterdir()) == ["3"]


def test_what_a_killed_worker_left_is_no_copy_and_goes(
    checkpoints: Checkpoints, copies: WarmCopies, tmp_path: Path
) -> None:
    for name in ("3.next", "4.gone"):
        (tmp_path / "warm" / name / "files").mkdir(parents=True)
    (tmp_path / "warm" / "6" / "files").mkdir(parents=True)
    written(tmp_path / "warm" / "7", **{"manifest-1": b"torn"})
    assert copies.all() == {}
    copies.clean()
    assert sorted(path.name for path in (tmp_path / "warm").iterdir()) == ["6", "7"]


def test_a_copy_takes_the_place_of_an_older_state(
    checkpoints: Checkpoints, copies: WarmCopies, tmp_path: Path
) -> None:
    state = written(tmp_path / "state", shard__catalog_duckdb=noise(600_000))
    checkpoints.take(snapshot(state))
    copy = copies.refresh(3, None, nobody)
    assert copy is not None
    place = written(tmp_path / "shards" / "3", index=b"older", reached=b"5")
    copies.move(copy, "shard", place, position=None)
    assert content(place) == content(state / "shard")
    assert list((tmp_path / "warm").iterdir()) == []


def test_a_copy_that_cannot_be_moved_stays(checkpoints: Checkpoints, copies: WarmCopies, tmp_path: Path) -> None:
    state = written(tmp_path / "state", shard__catalog_duckdb=noise(600_000))
    checkpoints.take(snapshot(state))
    copy = copies.refresh(3, None, nobody)
    assert copy is not None
    with pytest.raises(ShardLocked):
        copies.move(copy, "shard", tmp_path / "shards" / "3", position=5)
    assert copies.all() == {3: copy}
    assert content(copy.files) == content(state)


#: Moves the warm copy of partition 3, and is killed before or after its shard is put in its place.
MOVING = """
import os, sys
from pathlib import Path
from tables.checkpoints import warm
from tables.checkpoints.checkpoints import Checkpoints
folder, store, place, point = sys.argv[1:]
copies, replace_shard = warm.WarmCopies(Path(folder), Checkpoints(store)), warm.replace_shard
def killed(*given, **named):
    if point == "after":
        replace_shard(*given, **named)
    os._exit(9)
warm.replace_shard = killed
copies.move(copies.all()[3], "shard", Path(place), position=None)
"""


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_copy_is_whole_though_a_worker_was_killed_while_it_was_moved(
    checkpoints: Checkpoints, copies: WarmCopies, tmp_path: Path, point: str
) -> None:
    """A copy without its shard would be refreshed to the blocks that changed, and zeros for all others."""
    state = written(tmp_path / "state", shard__catalog_duckdb=noise(600_000), windows__rows=noise(1000))
    checkpoints.take(snapshot(state))
    assert copies.refresh(3, None, nobody) is not None
    words = [MOVING, str(tmp_path / "warm"), checkpoints.url, str(tmp_path / "shards" / "3"), point]
    assert subprocess.run([sys.executable, "-c", *words], check=False).returncode == 9
    written(state, shard__catalog_duckdb=noise(600_000)[:500_000] + noise(100_000, 2))
    checkpoints.take(snapshot(state))
    copies.clean()
    copy = copies.refresh(3, copies.all().get(3), nobody)
    assert copy is not None
    assert content(copy.files) == content(state)
    assert sorted(path.name for path in (tmp_path / "warm").iterdir()) == ["3"]
