"""A copy that is made anew from a newer generation fetches what is new alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.former import Former
from tables.checkpoints.store import Store
from tests.tables.checkpoints.made import content, noise, snapshot, written


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(f"file://{tmp_path / 'store'}")


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each range that is read."""
    ranges, read = list[int](), Store.read_range

    def counted(store: Store, name: str, start: int, end: int) -> memoryview | None:
        ranges.append(end - start)
        return read(store, name, start, end)

    monkeypatch.setattr(Store, "read_range", counted)
    return ranges


def taken_twice(checkpoints: Checkpoints, tmp_path: Path) -> Former:
    """The first generation of a state as it was restored, of which the second differs by a little."""
    whole = noise(8_000_000)
    state = written(tmp_path / "state", shard__catalog_duckdb=whole, shard__vectors=noise(1_000_000, 1))
    checkpoints.take(snapshot(state))
    first = checkpoints.newest(3)
    assert first is not None
    former = Former(first, tmp_path / "former")
    checkpoints.restore(first, former.folder)
    written(state, shard__catalog_duckdb=whole[:5_000_000] + noise(100_000, 2) + whole[5_100_000:])
    checkpoints.take(snapshot(state))
    return former


def test_what_former_files_have_does_not_travel(checkpoints: Checkpoints, fetched: list[int], tmp_path: Path) -> None:
    former = taken_twice(checkpoints, tmp_path)
    newest = checkpoints.newest(3)
    assert newest is not None
    fetched.clear()
    seen: list[tuple[int, int]] = []
    checkpoints.restore(newest, tmp_path / "now", lambda done, whole: seen.append((done, whole)), former)
    assert content(tmp_path / "now") == content(tmp_path / "state")
    assert sum(fetched) <= 3 * 262_144
    assert seen[-1] == (9_000_000, 9_000_000)


def test_what_is_not_what_it_was_is_fetched(checkpoints: Checkpoints, fetched: list[int], tmp_path: Path) -> None:
    """A flipped byte, and a file that has gone."""
    former = taken_twice(checkpoints, tmp_path)
    newest = checkpoints.newest(3)
    assert newest is not None
    catalog = former.folder / "shard" / "catalog.duckdb"
    catalog.write_bytes(b"x" + catalog.read_bytes()[1:])
    (former.folder / "shard" / "vectors").unlink()
    fetched.clear()
    checkpoints.restore(newest, tmp_path / "now", former=former)
    assert content(tmp_path / "now") == content(tmp_path / "state")
    assert 1_000_000 < sum(fetched) < 4_000_000
