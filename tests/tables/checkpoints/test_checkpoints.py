"""Checkpoints are taken and restored, and only what is new travels."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import Fenced
from tables.checkpoints.checkpoints import Checkpoints
from tests.tables.checkpoints.made import content, facts, noise, snapshot, written


@pytest.fixture
def checkpoints(url: str) -> Checkpoints:
    return Checkpoints(url)


@pytest.mark.slow
def test_what_was_taken_is_restored(checkpoints: Checkpoints, tmp_path: Path) -> None:
    state = written(tmp_path / "state", shard__catalog_duckdb=noise(3_000_001), windows__1_sst=b"rows", empty=b"")
    taken = checkpoints.take(snapshot(state))
    manifest = checkpoints.newest(3)
    assert taken is not None
    assert manifest is not None
    assert taken.generation == manifest.generation == 1
    assert manifest.facts == facts()
    seen: list[tuple[int, int]] = []
    checkpoints.restore(manifest, tmp_path / "restored", lambda done, whole: seen.append((done, whole)))
    assert content(tmp_path / "restored") == content(state)
    assert seen[0] == (0, 3_000_005)
    assert seen[-1] == (3_000_005, 3_000_005)


def test_nothing_but_the_manifest_travels_where_nothing_changed(checkpoints: Checkpoints, tmp_path: Path) -> None:
    state = written(tmp_path / "state", shard__catalog_duckdb=noise(3_000_000))
    first = checkpoints.take(snapshot(state))
    second = checkpoints.take(snapshot(state))
    assert first is not None
    assert second is not None
    assert first.uploaded > 3_000_000
    assert second.uploaded < 3_000
    assert [manifest.generation for manifest in checkpoints.generations(3)] == [2, 1]


def test_a_lower_epoch_is_fenced(checkpoints: Checkpoints, tmp_path: Path) -> None:
    state = written(tmp_path / "state", a=b"1")
    checkpoints.take(snapshot(state, facts(epoch=5)))
    with pytest.raises(Fenced, match="group generation 5"):
        checkpoints.take(snapshot(state, facts(epoch=4)))
    assert checkpoints.take(snapshot(state, facts(epoch=5))) is not None
