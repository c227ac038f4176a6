"""A copy goes from one generation to the next, and only what differs travels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.errors import DamagedCheckpoint, StoreUnavailable
from tables.checkpoints import refreshing
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.manifest import Manifest
from tables.checkpoints.store import Store
from tests.tables.checkpoints.made import content, noise, snapshot, written

BLOCK = 262_144
Rounds = tuple[Checkpoints, Manifest, Manifest, dict[str, bytes]]


@pytest.fixture
def rounds(url: str, tmp_path: Path) -> Rounds:
    """Two generations, the first of which is in `copy`, and what the second consists of."""
    checkpoints = Checkpoints(url)
    state = written(
        tmp_path / "state",
        shard__catalog_duckdb=noise(20 * BLOCK),
        shard__vectors_f32=noise(BLOCK + 9, 1),
        windows__1_sst=noise(9, 2),
        windows__2_sst=noise(9, 3),
    )
    checkpoints.take(snapshot(state))
    first = checkpoints.newest(3)
    assert first is not None
    checkpoints.restore(first, tmp_path / "copy")
    catalog = bytearray((state / "shard/catalog.duckdb").read_bytes())
    catalog[12_288 + 7 * BLOCK] ^= 1
    written(state, shard__catalog_duckdb=bytes(catalog), shard__vectors_f32=noise(5, 4), windows__3_sst=noise(9, 5))
    (state / "windows/1.sst").unlink()
    checkpoints.take(snapshot(state))
    second = checkpoints.newest(3)
    assert second is not None
    return checkpoints, first, second, content(state)


def test_it_is_the_newer_one_then_and_little_has_travelled(
    rounds: Rounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints, first, second, wanted = rounds
    fetched: list[int] = []
    read_range = Store.read_range

    def watched(self: Store, name: str, start: int, end: int) -> memoryview | None:
        fetched.append(end - start)
        return read_range(self, name, start, end)

    monkeypatch.setattr(Store, "read_range", watched)
    seen: list[tuple[int, int]] = []
    checkpoints.refresh(tmp_path / "copy", first, second, lambda done, whole: seen.append((done, whole)))
    assert content(tmp_path / "copy") == wanted
    assert sum(fetched) == BLOCK + 5 + 9
    assert seen[0] == (second.whole - sum(fetched), second.whole)
    assert seen[-1] == (second.whole, second.whole)
    checkpoints.refresh(tmp_path / "copy", second, first)
    checkpoints.restore(first, tmp_path / "restored")
    assert content(tmp_path / "copy") == content(tmp_path / "restored")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("copy.")]


def test_a_store_that_is_away_leaves_it_as_it_was(
    rounds: Rounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints, first, second, wanted = rounds
    before = content(tmp_path / "copy")

    def away(*_: object) -> None:
        raise StoreUnavailable("s3://somewhere", "no answer")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "read_range", away)
        with pytest.raises(StoreUnavailable):
            checkpoints.refresh(tmp_path / "copy", first, second)
    assert content(tmp_path / "copy") == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("copy.")]
    checkpoints.refresh(tmp_path / "copy", first, second)
    assert content(tmp_path / "copy") == wanted


def test_a_pack_that_is_gone_leaves_it_as_it_was(
    rounds: Rounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints, first, second, _ = rounds
    before = content(tmp_path / "copy")
    monkeypatch.setattr(Store, "read_range", lambda *_: None)
    with pytest.raises(DamagedCheckpoint, match="its pack is missing"):
        checkpoints.refresh(tmp_path / "copy", first, second)
    assert content(tmp_path / "copy") == before


def test_whoever_is_killed_while_it_is_changed_leaves_no_copy_and_a_restore_makes_one(
    rounds: Rounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a killed process would, nothing is tidied up."""
    checkpoints, first, second, wanted = rounds
    killed: Callable[..., None] = _raise_killed
    with monkeypatch.context() as patch:
        patch.setattr(refreshing, "sync_all", killed)
        patch.setattr(refreshing, "remove", lambda folder: None)
        with pytest.raises(KeyboardInterrupt):
            checkpoints.refresh(tmp_path / "copy", first, second)
    assert not (tmp_path / "copy").exists()
    assert (tmp_path / "copy.restoring").exists()
    assert (tmp_path / "copy.news").exists()
    checkpoints.restore(second, tmp_path / "copy")
    assert content(tmp_path / "copy") == wanted
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("copy.")]


def _raise_killed(*_: object) -> None:
    raise KeyboardInterrupt
