"""The windows' rows of partitions that come: from their checkpoints within one time for all, or not at all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.errors import DataDirError, StoreUnavailable
from streams.shards.restore import restoring_windows
from streams.shards.restore.restoring_windows import RestoringWindows
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.manifest import Manifest
from tables.rocksdb import LOCK, Memory
from tables.windows.partition_store import PartitionStore, State
from tests.support.waiting import until
from tests.tables.checkpoints.made import facts, snapshot

PARTITIONS = range(8)


@pytest.fixture
def store(tmp_path: Path) -> Checkpoints:
    """With one row in the windows of each partition."""
    store = Checkpoints((tmp_path / "store").as_uri())
    for partition in PARTITIONS:
        folder = tmp_path / "state" / str(partition)
        folder.mkdir(parents=True)
        rows = PartitionStore(tmp_path / "rows" / str(partition), Memory())
        rows.put(b"row", b"%d" % partition)
        rows.commit(State())
        rows.snapshot(folder / "windows")
        rows.close()
        store.take(snapshot(folder, facts(partition=partition)))
    return store


class Coming(RestoringWindows):
    """`away`: whether the store is known to be."""

    away = False

    def __init__(self, store: Checkpoints, folder: Path) -> None:
        super().__init__(store=store, folder=folder, partitions=8, known_away=lambda: self.away)


@pytest.fixture
def coming(tmp_path: Path, store: Checkpoints) -> Coming:
    return Coming(store, tmp_path / "restoring")


@pytest.fixture
def folders(tmp_path: Path) -> dict[int, Path]:
    return {partition: tmp_path / "disk" / "windows" / str(partition) for partition in PARTITIONS}


def rows(folders: dict[int, Path]) -> dict[int, bytes | None]:
    found = {}
    for partition, folder in folders.items():
        store = PartitionStore(folder, Memory())
        found[partition] = store.get(b"row")
        store.close()
    return found


NOTHING = dict.fromkeys(PARTITIONS)


async def test_they_come_from_the_newest_checkpoints(coming: Coming, folders: dict[int, Path]) -> None:
    """Also where a former owner has left no more than the file of its lock."""
    folders[3].mkdir(parents=True)
    (folders[3] / LOCK).touch()
    await coming.bring(folders)
    assert rows(folders) == {partition: b"%d" % partition for partition in PARTITIONS}
    assert list((coming._folder).iterdir()) == []


@pytest.fixture
def hanging(store: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Of which partitions a store was asked that says nothing; it goes on when the test is over."""
    asked, over, restore = list[int](), threading.Event(), store.restore

    def hang(manifest: Manifest, *arguments: object) -> None:
        asked.append(manifest.facts.partition)
        over.wait()
        restore(manifest, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "restore", hang)
    yield asked
    over.set()


async def test_a_store_that_hangs_is_waited_for_once(
    coming: Coming, folders: dict[int, Path], hanging: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all partitions side by side; those that come soon afterwards do not ask it at all."""
    monkeypatch.setattr(restoring_windows, "WINDOWS_SECONDS", 0.5)
    threads = threading.active_count()
    await coming.bring(folders)
    await coming.bring(folders)
    assert len(hanging) <= len(PARTITIONS)
    assert rows(folders) == NOTHING
    assert threading.active_count() - threads <= len(PARTITIONS)


async def test_what_comes_too_late_takes_no_place(
    coming: Coming, store: Checkpoints, folders: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The changelogs are read into what is open by then."""
    here, over, restore, restored = threading.Event(), threading.Event(), store.restore, list[int]()

    def slow(manifest: Manifest, folder: Path, *_: object) -> None:
        restore(manifest, folder)
        here.set()
        over.wait()
        restored.append(manifest.facts.partition)

    monkeypatch.setattr(store, "restore", slow)
    bringing = asyncio.ensure_future(coming.bring({0: folders[0]}))
    await until(here.is_set)
    bringing.cancel()
    await asyncio.wait([bringing])
    over.set()
    await until(lambda: restored)
    await until(lambda: not list((coming._folder).iterdir()))
    assert not folders[0].exists()


async def test_a_store_that_is_known_to_be_away_is_not_asked(
    coming: Coming, folders: dict[int, Path], hanging: list[int]
) -> None:
    coming.away = True
    await coming.bring(folders)
    assert hanging == []
    assert rows(folders) == NOTHING


@pytest.mark.parametrize("fault", [DataDirError(Path("/full"), "no room"), StoreUnavailable("s3://b", "no answer")])
async def test_whatever_fails_the_changelogs_are_read(
    coming: Coming, store: Checkpoints, folders: dict[int, Path], monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(store, "restore", fail)
    await coming.bring(folders)
    assert rows(folders) == NOTHING
