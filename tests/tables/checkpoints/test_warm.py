"""Warm copies are whole, as new as their checkpoint, and moved into place."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    for name in ("3.next", "4.gone", "5.former"):
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
