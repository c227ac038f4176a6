"""What was forgotten leaves the store, and what is needed stays."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.erasing import leaving, overdue, superseded
from tables.checkpoints.manifest import Block, File, Manifest, Pack
from tests.tables.checkpoints.made import content, facts, noise, snapshot, written

BLOCK = 262_144
HOUR = 3600
SECRET = b"what nobody may read any more"
NINE_HOURS = timedelta(hours=9)


class Clock:
    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def objects_with(store: Path, content: bytes) -> list[Path]:
    return [path for path in store.rglob("*") if path.is_file() and content in path.read_bytes()]


def take(checkpoints: Checkpoints, state: Path, clock: Clock, sealed: tuple[str, ...] = ()) -> int:
    """A take and an expiry now; the bytes that travelled."""
    taken = checkpoints.take(snapshot(state, facts(at=int(clock.now * 1000)), sealed))
    assert taken is not None
    checkpoints.expire(3)
    return taken.uploaded


def made(folder: Path) -> Path:
    return written(folder, sealed=noise(3 * BLOCK) + SECRET + noise(BLOCK), log=b"")


def forgotten(state: Path) -> None:
    path = state / "sealed"
    path.write_bytes(path.read_bytes().replace(SECRET, bytes(len(SECRET))))


@pytest.mark.parametrize("keep", [1, 3, 100])
@pytest.mark.parametrize("sealed", [(), ("sealed",)], ids=["open", "sealed"])
def test_no_object_has_a_forgotten_byte_after_the_term(
    tmp_path: Path, clock: Clock, keep: int, sealed: tuple[str, ...]
) -> None:
    """A take an hour, in which something changes each time."""
    store = tmp_path / "store"
    checkpoints = Checkpoints(f"file://{store}", keep=keep, erase_within=NINE_HOURS, clock=clock)
    state = made(tmp_path / "state")
    take(checkpoints, state, clock, sealed)
    assert objects_with(store, SECRET)
    forgotten(state)
    for hour in range(9):
        clock.now += HOUR
        (state / "log").write_bytes(noise(100, hour))
        take(checkpoints, state, clock, sealed)
    assert not objects_with(store, SECRET)
    for manifest in checkpoints.generations(3):
        assert checkpoints.verify(manifest) == []
    newest = checkpoints.newest(3)
    assert newest is not None
    checkpoints.restore(newest, tmp_path / "restored")
    assert content(tmp_path / "restored") == content(state)


@pytest.mark.parametrize("process", ["the same", "another each hour"])
def test_in_a_silent_partition_takes_become_due_until_it_is_gone(tmp_path: Path, clock: Clock, process: str) -> None:
    store = tmp_path / "store"
    checkpoints = Checkpoints(f"file://{store}", erase_within=NINE_HOURS, clock=clock)
    state = made(tmp_path / "state")
    take(checkpoints, state, clock)
    forgotten(state)
    clock.now += HOUR
    take(checkpoints, state, clock)
    takes = 0
    for _ in range(8):
        clock.now += HOUR
        if process != "the same":
            checkpoints = Checkpoints(f"file://{store}", erase_within=NINE_HOURS, clock=clock)
        if checkpoints.overdue(3):
            take(checkpoints, state, clock)
            takes += 1
        checkpoints.expire(3)
    assert not objects_with(store, SECRET)
    assert takes == 1


def test_what_was_left_by_a_take_that_was_killed_goes_too(tmp_path: Path, clock: Clock) -> None:
    """A pack that no manifest names, and a draft of an object that was never whole."""
    store = tmp_path / "store"
    checkpoints = Checkpoints(f"file://{store}", clock=clock)
    state = made(tmp_path / "state")
    take(checkpoints, state, clock)
    written(store / "3" / "packs", **{"0" * 64: SECRET * 2})
    (store / "3" / "packs" / f"{'1' * 64}#1").write_bytes(SECRET * 2)
    forgotten(state)
    checkpoints.expire(3)
    assert len(objects_with(store, SECRET * 2)) == 2
    clock.now += HOUR + 1
    checkpoints.expire(3)
    assert not objects_with(store, SECRET * 2)
    newest = checkpoints.newest(3)
    assert newest is not None
    assert checkpoints.verify(newest) == []


@pytest.mark.slow
def test_generations_beyond_keep_are_removed_with_what_they_alone_need(
    url: str, tmp_path: Path, clock: Clock
) -> None:
    checkpoints = Checkpoints(url, keep=2, clock=clock)
    for seed in range(5):
        take(checkpoints, written(tmp_path / "state", a=noise(BLOCK, seed)), clock)
        clock.now += 300
    assert checkpoints.numbers(3) == [5, 4]
    assert [len(manifest.packs) for manifest in checkpoints.generations(3)] == [1, 1]
    expired = checkpoints.expire(3)
    assert expired == (0, 0, 0)
    for manifest in checkpoints.generations(3):
        assert checkpoints.verify(manifest) == []


def test_the_newest_stays_however_old_it_is(url: str, tmp_path: Path, clock: Clock) -> None:
    checkpoints = Checkpoints(url, clock=clock)
    take(checkpoints, written(tmp_path / "state", a=b"1"), clock)
    clock.now += 365 * 24 * HOUR
    assert checkpoints.expire(3) == (0, 0, 0)
    newest = checkpoints.newest(3)
    assert newest is not None
    assert checkpoints.verify(newest) == []


def test_a_damaged_manifest_does_not_count_as_one_that_is_kept(tmp_path: Path, clock: Clock) -> None:
    checkpoints = Checkpoints(f"file://{tmp_path}/store", keep=2, clock=clock)
    for seed in range(3):
        checkpoints.take(snapshot(written(tmp_path / "state", a=noise(9, seed)), facts(at=int(clock.now * 1000))))
    os.truncate(tmp_path / "store/3/manifests/000000000003", 10)
    checkpoints.expire(3)
    assert checkpoints.numbers(3) == [3, 2, 1]
    for seed in range(3, 5):
        take(checkpoints, written(tmp_path / "state", a=noise(9, seed)), clock)
    assert checkpoints.numbers(3) == [5, 4]


class TestLeaving:
    """The rule, on manifests that are made by hand: pack i has blocks of which the first `live` are used."""

    TERM = timedelta(milliseconds=300)

    def manifest(self, *packs: tuple[int, int], generation: int = 1, at: int = 0) -> Manifest:
        """Packs of ten blocks: (how many of them live, since when some are dead)."""
        blocks = tuple(
            Block("0", pack, 100 * place, 100) for pack, (live, _) in enumerate(packs) for place in range(live)
        )
        return Manifest(
            generation,
            facts(at=at),
            tuple(Pack(f"p{number}", 1_000, since) for number, (_, since) in enumerate(packs)),
            (File("a", 100 * len(blocks), "", blocks),),
        )

    def test_whole_packs_stay(self) -> None:
        assert leaving(self.manifest(*[(10, 0)] * 100), 10_000, self.TERM) == set()

    def test_dead_for_a_third_of_the_term_is_too_long_however_much_it_is(self) -> None:
        manifest = self.manifest((9, 100), (9, 101))
        assert leaving(manifest, 200, self.TERM) == {"p0"}
        assert overdue(manifest.packs, 200, self.TERM)
        assert not overdue(manifest.packs, 199, self.TERM)

    def test_before_that_a_little_each_time_from_half_of_it_on(self) -> None:
        manifest = self.manifest(*[(10, 0)] * 95, (9, 50), (9, 51), (9, 52))
        assert leaving(manifest, 99, self.TERM) == set()
        assert leaving(manifest, 102, self.TERM) == {"p95", "p96"}

    def test_packs_that_are_mostly_dead_are_left_soon(self) -> None:
        manifest = self.manifest(*[(10, 0)] * 95, (5, 100), (2, 100), (6, 100))
        assert leaving(manifest, 101, self.TERM) == {"p95", "p96"}

    def test_no_more_than_three_percent_before_it_must_be(self) -> None:
        manifest = self.manifest(*[(4, 1)] * 1_000)
        assert len(leaving(manifest, 99, self.TERM)) == 30

    def test_generations_that_are_too_many_or_too_old(self) -> None:
        generations = [self.manifest(generation=number, at=at) for number, at in [(4, 10), (3, 8), (2, 6), (1, 4)]]
        assert [one.generation for one in superseded(generations, 3, 20, self.TERM)] == [1]
        assert [one.generation for one in superseded(generations, 9, 108, self.TERM)] == [3, 2, 1]
        assert superseded(generations[:1], 1, 10_000, self.TERM) == []
