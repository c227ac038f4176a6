"""A partition's checkpoint is taken again when its windows change, and when what was forgotten leaves their files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tables.checkpoints.checkpoints import Checkpoints
from tables.windows.window_stores import SETTLED_MS, DiskRows, WindowStores
from tests.streams.shards.restore.house import PARTITION, Log, Worker, at_work
from tests.support.window_stores import close_stores

CHANGELOG = "sessions"
NINE_HOURS, HOUR = timedelta(hours=9), 3_600


class Clock:
    seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Checkpoints:
    return Checkpoints((tmp_path / "store").as_uri(), erase_within=NINE_HOURS, clock=clock)


class Windows:
    """The windows of the partition, on the worker's disk."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.clock, self.written = clock, 0
        self.stores = WindowStores(folder, lambda: int(clock() * 1000))
        self.stores.topic_ids = {CHANGELOG: "one"}
        self.rows: DiskRows = self.stores.table(CHANGELOG, b"s")
        self.stores.open(PARTITION)
        self.stores.resume(CHANGELOG, PARTITION)

    def write(self, key: bytes | None = None, value: bytes | None = None) -> None:
        begun = self.stores.begin()
        if key is not None:
            self.rows.write(PARTITION, [(key, value)])
        self.written += 1
        self.stores.commit(PARTITION, {CHANGELOG: (self.written, self.written, 0)}, begun)

    def forget(self, key: bytes, beginning: bytes) -> None:
        self.stores.erase_later(PARTITION, beginning)
        self.write(key, None)

    def erase(self) -> int:
        self.clock.seconds += SETTLED_MS / 1000 + 1
        return self.stores.erase(PARTITION)


@asynccontextmanager
async def working(
    tmp_path: Path, store: Checkpoints, log: Log, clock: Clock
) -> AsyncIterator[tuple[Worker, Windows]]:
    windows = Windows(tmp_path / "disk" / "windows", clock)
    worker = Worker(tmp_path / "disk", store, log, windows=windows.stores)
    worker.job._now = lambda: int(clock() * 1000)
    try:
        async with at_work(worker):
            yield worker, windows
    finally:
        close_stores(windows.stores)


async def outcome(worker: Worker) -> str:
    return (await worker.job.take(PARTITION)).outcome


async def test_where_only_windows_change_a_checkpoint_is_taken(
    tmp_path: Path, store: Checkpoints, clock: Clock
) -> None:
    """And none where a changelog has moved on without a row."""
    async with working(tmp_path, store, Log(), clock) as (worker, windows):
        windows.write(b'["ann","s"]', b"hello")
        assert await outcome(worker) == "taken"
        assert await outcome(worker) == "unchanged"
        windows.write()
        assert await outcome(worker) == "unchanged"
        windows.write(b'["ann","s"]', b"hello, and good day")
        assert await outcome(worker) == "taken"
        assert await outcome(worker) == "unchanged"


async def test_a_start_knows_what_its_newest_checkpoint_has(tmp_path: Path, store: Checkpoints, clock: Clock) -> None:
    log = Log()
    async with working(tmp_path, store, log, clock) as (worker, windows):
        windows.write(b'["ann","s"]', b"hello")
        assert await outcome(worker) == "taken"
    async with working(tmp_path, store, log, clock) as (worker, windows):
        assert await outcome(worker) == "unchanged"
        windows.write(b'["ben","s"]', b"hi")
    async with working(tmp_path, store, log, clock) as (worker, _):
        assert await outcome(worker) == "taken", "it was changed before the start"


async def test_an_erasure_is_a_change_also_where_it_was_before_the_start(
    tmp_path: Path, store: Checkpoints, clock: Clock
) -> None:
    log = Log()
    async with working(tmp_path, store, log, clock) as (worker, windows):
        windows.write(b'["ann","s"]', b"hello")
        windows.forget(b'["ann","s"]', b'["ann",')
        assert await outcome(worker) == "taken"
        assert await outcome(worker) == "unchanged"
        newest = store.newest(PARTITION)
        assert newest is not None
        assert newest.facts.in_pages, "what is deleted is still in files"
        assert windows.erase() == 1
    async with working(tmp_path, store, log, clock) as (worker, _):
        assert await outcome(worker) == "taken"
        newest = store.newest(PARTITION)
        assert newest is not None
        assert not newest.facts.in_pages
        assert await outcome(worker) == "unchanged"


async def test_what_a_forgotten_user_said_is_in_no_object_after_the_term(
    tmp_path: Path, store: Checkpoints, clock: Clock
) -> None:
    """Also of the generation that was taken between the command and the rewriting of the windows' files."""
    async with working(tmp_path, store, Log(), clock) as (worker, windows):
        windows.write(b'["ann","s"]', b"falconry with Zephyrine")
        windows.write(b'["ben","s"]', b"a cup of tea")
        assert await outcome(worker) == "taken"
        windows.forget(b'["ann","s"]', b'["ann",')
        assert await outcome(worker) == "taken"
        assert objects_with(tmp_path / "store", b"Zephyrine")
        windows.erase()
        for _ in range(9):
            await worker.job.take(PARTITION)
            await worker.job._expire(PARTITION)
            clock.seconds += HOUR
        assert objects_with(tmp_path / "store", b"Zephyrine") == []
        assert objects_with(tmp_path / "store", b"a cup of tea")


def objects_with(store: Path, content: bytes) -> list[Path]:
    """Packs are not compressed."""
    return [path for path in store.rglob("*") if path.is_file() and content in path.read_bytes()]
