"""Only what is new is read and travels."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.store import Content, Store
from tests.tables.checkpoints.made import content, noise, snapshot, written

BLOCK = 262_144


def overwritten(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


@pytest.mark.slow
def test_after_one_percent_changed_no_more_than_five_percent_travels(url: str, tmp_path: Path) -> None:
    """100 blocks of a catalog, one of them changed, and a file that grew by a little."""
    checkpoints = Checkpoints(url)
    state = written(tmp_path / "state", shard__catalog_duckdb=noise(100 * BLOCK), shard__vectors_f32=noise(99))
    first = checkpoints.take(snapshot(state))
    overwritten(state / "shard" / "catalog.duckdb", 12_288 + 40 * BLOCK, b"something else")
    overwritten(state / "shard" / "vectors.f32", 99, b"one more")
    second = checkpoints.take(snapshot(state))
    assert first is not None
    assert second is not None
    assert first.whole == 100 * BLOCK + 99
    assert first.uploaded >= first.whole
    assert BLOCK < second.uploaded <= 0.05 * second.whole
    newest = checkpoints.newest(3)
    assert newest is not None
    checkpoints.restore(newest, tmp_path / "restored")
    assert content(tmp_path / "restored") == content(state)


def test_what_is_there_twice_travels_once(url: str, tmp_path: Path) -> None:
    checkpoints = Checkpoints(url)
    taken = checkpoints.take(snapshot(written(tmp_path / "state", a=noise(BLOCK), b=noise(BLOCK) + noise(BLOCK))))
    assert taken is not None
    assert taken.whole == 3 * BLOCK
    assert taken.uploaded < 1.1 * BLOCK


def test_a_sealed_file_is_read_once(url: str, tmp_path: Path) -> None:
    """Its bytes are changed behind its back; whoever read it again would see it."""
    checkpoints = Checkpoints(url)
    state = written(tmp_path / "state", sealed=noise(BLOCK), other=b"1")
    checkpoints.take(snapshot(state, sealed=["sealed"]))
    was = (state / "sealed").stat()
    overwritten(state / "sealed", 0, b"changed")
    os.utime(state / "sealed", ns=(was.st_atime_ns, was.st_mtime_ns))
    taken = checkpoints.take(snapshot(state, sealed=["sealed"]))
    assert taken is not None
    assert taken.uploaded < 1_000


@pytest.mark.parametrize("process", ["the same", "another"])
def test_a_sealed_file_is_read_again_where_it_was_overwritten_or_nobody_knows(
    url: str, tmp_path: Path, process: str
) -> None:
    checkpoints = Checkpoints(url)
    state = written(tmp_path / "state", sealed=noise(3 * BLOCK))
    checkpoints.take(snapshot(state, sealed=["sealed"]))
    was = (state / "sealed").stat().st_mtime_ns
    overwritten(state / "sealed", BLOCK, b"changed")
    if process == "another":
        checkpoints = Checkpoints(url)
        os.utime(state / "sealed", ns=(was, was))
    else:
        os.utime(state / "sealed", ns=(was, was + 1))
    taken = checkpoints.take(snapshot(state, sealed=["sealed"]))
    assert taken is not None
    assert BLOCK < taken.uploaded < 2 * BLOCK


def test_a_stop_gives_no_generation(url: str, tmp_path: Path) -> None:
    checkpoints = Checkpoints(url)
    state = written(tmp_path / "state", a=noise(3 * BLOCK))
    asked: list[None] = []

    def stop() -> bool:
        asked.append(None)
        return len(asked) == 3

    assert checkpoints.take(snapshot(state), stop) is None
    assert len(asked) == 3
    assert checkpoints.newest(3) is None
    assert checkpoints.take(snapshot(state)) is not None


def test_two_packs_at_most_are_on_their_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tables.checkpoints.taking.PACK_BYTES", BLOCK)
    together: list[int] = []
    under_way: set[str] = set()
    both = threading.Barrier(2)
    create = Store.create

    def watched(self: Store, name: str, content: Content) -> bool:
        if "/packs/" not in name:
            return create(self, name, content)
        under_way.add(name)
        together.append(len(under_way))
        both.wait(10)
        try:
            return create(self, name, content)
        finally:
            under_way.remove(name)

    monkeypatch.setattr(Store, "create", watched)
    checkpoints = Checkpoints(f"file://{tmp_path}/store")
    assert checkpoints.take(snapshot(written(tmp_path / "state", a=noise(8 * BLOCK)))) is not None
    assert max(together) == 2
    assert sorted(path.stat().st_size for path in (tmp_path / "store/3/packs").iterdir()) == [BLOCK] * 8


def test_a_restore_that_is_ended_by_its_caller_leaves_nothing(url: str, tmp_path: Path) -> None:
    checkpoints = Checkpoints(url)
    checkpoints.take(snapshot(written(tmp_path / "state", a=noise(BLOCK))))
    newest = checkpoints.newest(3)
    assert newest is not None

    def enough(done: int, whole: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checkpoints.restore(newest, tmp_path / "restored", enough)
    assert not list(tmp_path.glob("restored*"))


def test_a_large_pack_of_which_little_is_wanted_is_fetched_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks 0 and 30 are what is left of a pack of 31; the gap between them does not travel."""
    checkpoints = Checkpoints(f"file://{tmp_path}/store")
    state = written(tmp_path / "state", a=noise(31 * BLOCK))
    checkpoints.take(snapshot(state))
    overwritten(state / "a", BLOCK, noise(29 * BLOCK, seed=1))
    monkeypatch.setattr("tables.checkpoints.checkpoints.leaving", lambda *_: set())
    checkpoints.take(snapshot(state))
    newest = checkpoints.newest(3)
    assert newest is not None
    fetched: list[int] = []
    read_range = Store.read_range

    def watched(self: Store, name: str, start: int, end: int) -> memoryview | None:
        fetched.append(end - start)
        return read_range(self, name, start, end)

    monkeypatch.setattr(Store, "read_range", watched)
    checkpoints.restore(newest, tmp_path / "restored")
    assert sum(fetched) == 31 * BLOCK
    assert content(tmp_path / "restored") == content(state)
