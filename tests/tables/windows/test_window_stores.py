"""Rows on the disk: what a kill leaves, what is not used, and that they are the same rows as in memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import rocksdict
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import DataDirError, WindowsLocked
from schemas.lifecycle import DAY_MS
from schemas.topic_specs import SLEPT_TOO_LONG_MS
from tables.rocksdb import LOCK, Memory
from tables.windows.partition_store import (
    CURRENT,
    DAMAGED,
    STATE_KEY,
    PartitionStore,
    Place,
    State,
    place_rows,
)
from tables.windows.resident import Resident
from tables.windows.rows import Change, Rows
from tables.windows.window_stores import WindowStores
from tests.support.examples import examples
from tests.support.locks import held_elsewhere
from tests.support.window_stores import close_stores

TEXTS, OTHERS = "texts-changelog", "others-changelog"


class Worker:
    """Two tables of a worker in a data directory, and the moment that it takes for now (epoch ms)."""

    def __init__(self, folder: Path, *, ids: dict[str, str] | None = None, resident: Resident | None = None) -> None:
        self.now = 1_000
        self.stores = WindowStores(folder, lambda: self.now)
        self.stores.topic_ids = {TEXTS: "one", OTHERS: "one"} if ids is None else ids
        self.texts: Rows[str] = Rows(str.encode, bytes.decode, kept=self.stores.table(TEXTS, b"t"), resident=resident)
        self.others: Rows[str] = Rows(str.encode, bytes.decode, kept=self.stores.table(OTHERS, b"o"))

    def open(self, partition: int = 0) -> dict[str, Place | None]:
        self.stores.open(partition)
        return {changelog: self.stores.resume(changelog, partition) for changelog in (TEXTS, OTHERS)}

    def write(self, offset: int | None, partition: int = 0) -> None:
        """The changelogs take what is due, and end there."""
        begun = self.stores.begin()
        self.texts.written(self.texts.drain())
        self.others.written(self.others.drain())
        ends = dict.fromkeys((TEXTS, OTHERS), (offset, 1, 7))
        self.stores.commit(partition, ends, begun)

    def held(self) -> dict[bytes, str]:
        return {key: text for _, key, text in self.texts.items()}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Workers of one data directory, one after the other; the last one is closed."""
    workers: list[Worker] = []

    def begun(**given: object) -> Worker:
        for former in workers:
            close_stores(former.stores)
        workers.append(Worker(tmp_path, **given))  # type: ignore[arg-type]
        return workers[-1]

    yield begun
    for worker in workers:
        close_stores(worker.stores)


def test_what_was_written_is_there_again_with_its_place(opened: Callable[..., Worker]) -> None:
    first = opened()
    assert first.open() == {TEXTS: None, OTHERS: None}
    first.texts.put(0, b"a", "A")
    first.others.put(0, b"a", "other")
    first.texts.put(0, b"b", "B")
    first.write(10)
    first.texts.delete(0, b"b")
    first.write(12)
    second = opened()
    place = Place("one", 12, 1, 1_000, 7)
    assert second.open() == {TEXTS: place, OTHERS: place}
    assert second.held() == {b"a": "A"}
    assert second.others.get(0, b"a") == "other"


def test_where_the_changelog_ends_is_not_known_the_former_place_holds(opened: Callable[..., Worker]) -> None:
    """What is read again from there leads to the same rows."""
    first = opened()
    first.open()
    first.texts.put(0, b"a", "A")
    first.write(10)
    first.now = 2_000
    first.texts.put(0, b"a", "AA")
    first.write(None)
    second = opened()
    assert second.open()[TEXTS] == Place("one", 10, 1, 1_000, 7)
    assert second.held() == {b"a": "AA"}


def test_rows_of_a_topic_that_was_made_anew_are_not_used(opened: Callable[..., Worker]) -> None:
    first = opened()
    first.open()
    first.texts.put(0, b"a", "A")
    first.others.put(0, b"a", "other")
    first.write(10)
    second = opened(ids={TEXTS: "two", OTHERS: "one"})
    places = second.open()
    assert (places[TEXTS], second.held(), second.stores.store(0) is not None) == (None, {}, True)
    assert places[OTHERS] == Place("one", 10, 1, 1_000, 7)
    assert second.others.get(0, b"a") == "other"


def test_without_the_topics_id_nothing_is_used(opened: Callable[..., Worker]) -> None:
    first = opened(ids={})
    first.open()
    first.texts.put(0, b"a", "A")
    first.write(10)
    second = opened(ids={})
    assert second.open()[TEXTS] is None
    assert second.held() == {}


@pytest.mark.parametrize(("later", "used"), [(SLEPT_TOO_LONG_MS - 1, True), (SLEPT_TOO_LONG_MS, False), (-1, False)])
def test_who_slept_for_too_long_may_have_missed_deletions(
    opened: Callable[..., Worker], later: int, used: bool
) -> None:
    """Tombstones leave the changelog. A clock that was set back says nothing either."""
    first = opened()
    first.open()
    first.texts.put(0, b"a", "A")
    first.write(10)
    second = opened()
    second.now = first.now + later
    assert (second.open()[TEXTS] is not None, bool(second.held())) == (used, used)


def test_another_format_is_made_anew(tmp_path: Path, opened: Callable[..., Worker]) -> None:
    store = PartitionStore(tmp_path / "0", Memory())
    store.put(STATE_KEY, msgspec.json.encode(State(format=99)))
    store.put(b"ta", b"A")
    store.commit(State(format=99))
    store.close()
    worker = opened()
    assert worker.open()[TEXTS] is None
    assert worker.held() == {}


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST"])
def test_what_is_damaged_is_removed_and_said(
    tmp_path: Path, opened: Callable[..., Worker], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    first = opened()
    first.open()
    first.texts.put(0, b"a", "A")
    first.write(10)
    first.stores.leave(0).close()
    damaged = next(path for path in (tmp_path / "0").iterdir() if path.name.startswith(name))
    damaged.write_bytes(b"nonsense" * 20)
    second = opened()
    assert second.open()[TEXTS] is None
    assert "the store is removed, and its changelogs are read from the start" in caplog.text


def test_rows_that_are_damaged_are_made_anew_at_the_next_start(tmp_path: Path, opened: Callable[..., Worker]) -> None:
    first = opened()
    first.open()
    for number in range(2_000):
        first.texts.put(0, b"%d" % number, os.urandom(100).hex())
    first.write(10)
    first.stores.leave(0).close()
    for path in (tmp_path / "0").glob("*.sst"):
        raw = bytearray(path.read_bytes())
        for place in range(0, len(raw) // 2, 500):
            raw[place] ^= 255
        path.write_bytes(raw)
    second = opened()
    with pytest.raises(DataDirError, match="recreated from its changelogs") as found:
        [second.open(), second.held()]
    third = opened()
    assert third.open()[TEXTS] is None
    assert third.held() == {}
    del found  # until here it held on to what had failed, as a log does: its files were closed all the same


def test_two_workers_have_one_partition_of_a_folder_open_one_after_the_other(
    tmp_path: Path, opened: Callable[..., Worker]
) -> None:
    opened().open()
    other = Worker(tmp_path)
    with pytest.raises(WindowsLocked):
        other.open()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.tables.windows.test_window_stores import Worker
worker = Worker(Path(sys.argv[1]))
worker.open()
for offset in range(1, 2_000):
    for table in (worker.texts, worker.others):
        table.put(0, b"newest", str(offset))
        table.put(0, b"%d" % offset, "x" * 5_000)
    worker.write(offset)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_kill_takes_whole_batches_and_the_newest_ones(tmp_path: Path, opened: Callable[..., Worker]) -> None:
    """Without a log of its own, what is not in a file yet is gone; the tail of the changelog brings it again."""
    root = Path(__file__).parents[3]
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=root, check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    worker = opened()
    places = worker.open()
    place = places[TEXTS]
    assert place is not None, "20 MB are more than what waits for a file"
    assert places[OTHERS] == place
    assert 0 < place.offset < 2_000
    numbers = {b"%d" % offset for offset in range(1, place.offset + 1)}
    assert worker.held().keys() == {b"newest", *numbers}
    assert worker.texts.get(0, b"newest") == worker.others.get(0, b"newest") == str(place.offset)


def test_a_snapshot_has_the_rows_and_places_of_its_moment(tmp_path: Path, opened: Callable[..., Worker]) -> None:
    worker = opened()
    worker.open()
    worker.texts.put(0, b"a", "A")
    worker.write(10)
    copy = tmp_path / "copies"
    copy.mkdir()
    assert worker.stores.snapshot(0, copy / "0").places[TEXTS].offset == 10
    worker.texts.put(0, b"a", "later")
    worker.write(11)
    restored = Worker(copy)
    place = restored.open()[TEXTS]
    assert place is not None
    assert (place.offset, restored.held()) == (10, {b"a": "A"})
    close_stores(restored.stores)


def test_what_is_forgotten_leaves_the_files(tmp_path: Path, opened: Callable[..., Worker]) -> None:
    """Once it is deleted and erased; a restart in between forgets no erasure."""
    worker = opened()
    worker.open()
    worker.texts.put(0, b'["ann","s"]', "a secret of hers")
    worker.texts.put(0, b'["ben","s"]', "what he said")
    worker.write(1)
    worker.stores.leave(0).close()
    assert in_files(tmp_path, b"a secret of hers")
    second = opened()
    second.open()
    second.texts.delete(0, b'["ann","s"]')
    second.stores.erase_later(0, b'["ann",')
    second.write(2)
    third = opened()
    third.open()
    assert third.stores.erase(0) == 0, "more may be deleted by the same command"
    third.now += 30_001
    assert third.stores.erase(0) == 2, "one of each table"
    assert not in_files(tmp_path, b"a secret of hers")
    assert in_files(tmp_path, b"what he said")
    assert third.stores.erase(0) == 0


def test_a_full_disk_forgets_no_erasure(
    tmp_path: Path, opened: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is to be rewritten needs room for a while; when there is some, it is done."""
    worker = opened()
    worker.open()
    worker.texts.put(0, b'["ann","s"]', "a secret of hers")
    worker.write(1)
    worker.texts.delete(0, b'["ann","s"]')
    worker.stores.erase_later(0, b'["ann",')
    worker.write(2)
    worker.now += 30_001

    def full(*_: object) -> None:
        raise RuntimeError("IO error: No space left on device: While appending to file")

    store = worker.stores.store(0)
    assert store is not None
    changes = store.changes
    with monkeypatch.context() as patch:
        patch.setattr("tables.windows.partition_store.rewrite", full)
        with pytest.raises(DataDirError, match="No space left on device"):
            worker.stores.erase(0)
    assert store.changes == changes, "no checkpoint counts as one without them"
    assert worker.stores.erase(0) == 2
    assert not in_files(tmp_path, b"a secret of hers")


def test_names_of_those_who_have_gone_leave_within_a_day(tmp_path: Path, opened: Callable[..., Worker]) -> None:
    """A session is kept, without a word, until it is over: its key says whose it was. RocksDB's own notes go next."""
    worker = opened()
    worker.open()
    worker.texts.put(0, b'["ann","s"]', "a secret of hers")
    worker.texts.put(0, b'["ben","s"]', "what he said")
    worker.write(1)
    worker.texts.put(0, b'["ann","s"]', "-")
    worker.stores.erase_later(0, b'["ann",')
    worker.write(2)
    worker.now += 30_001
    assert worker.stores.erase(0) == 2
    assert not in_files(tmp_path, b"a secret of hers")
    worker.texts.delete(0, b'["ann","s"]')
    worker.write(3)
    changes = worker.stores.changes(0)
    assert worker.stores.erase(0) == 0
    assert worker.stores.changes(0) == changes
    worker.now += DAY_MS
    assert worker.stores.erase(0) == 0
    assert worker.stores.changes(0) != changes, "a checkpoint without them is to be taken"
    changes = worker.stores.changes(0)
    back = opened()
    back.now = worker.now + 7 * DAY_MS
    back.stores.open(0)
    assert not in_files(tmp_path, b'"ann"')
    assert in_files(tmp_path, b"what he said")
    assert back.stores.erase(0) == 0
    assert back.stores.changes(0) == changes, "nothing has changed since"


@pytest.mark.parametrize("killed", [False, True])
def test_what_another_worker_forgot_leaves_the_files_when_the_changelog_tells(
    tmp_path: Path, opened: Callable[..., Worker], killed: bool
) -> None:
    """A partition that comes back, or windows of a checkpoint: tombstones are all that is told; also after a kill."""
    worker = opened()
    worker.open()
    worker.texts.put(0, b'["ann","s"]', "a secret of hers")
    worker.texts.put(0, b'["ben","s"]', "what he said")
    worker.write(1)
    back = opened()
    back.open()
    back.texts.restore(0, [(b'["ann","s"]', None), (b'["cleo","s"]', None)])
    back.stores.restored(TEXTS, 0, 3, 1, 0)
    if killed:
        back = opened()
        back.open()
    back.now += 30_001
    assert back.stores.erase(0) == 1
    assert not in_files(tmp_path, b"a secret of hers")
    assert in_files(tmp_path, b"what he said")


def test_tombstones_of_what_is_not_here_erase_nothing(opened: Callable[..., Worker]) -> None:
    """Of sessions that began and ended elsewhere, for instance: to rewrite files takes time."""
    worker = opened()
    worker.open()
    worker.texts.restore(0, [(b"a", b"A"), (b"a", None), (b"b", None)])
    worker.stores.restored(TEXTS, 0, 3, 1, 0)
    worker.now += 30_001
    assert worker.stores.erase(0) == 0


def test_what_was_of_a_partition_that_went_is_removed(tmp_path: Path, opened: Callable[..., Worker]) -> None:
    """Ids too, which RocksDB's own files have until they are opened again; then it starts over."""
    worker = opened()
    assert worker.stores.former() == frozenset()
    for partition in (0, 1):
        worker.open(partition)
    worker.texts.put(0, b'["ann","s"]', "a secret of hers")
    worker.write(1)
    worker.stores.leave(0).close()
    assert worker.stores.former() == {0}
    worker.stores.drop(1)
    assert worker.stores.partitions() == [1], "what is open stays"
    worker.stores.drop(0)
    assert worker.stores.former() == frozenset()
    assert not in_files(tmp_path / "0", b"ann")
    assert worker.open(0) == {TEXTS: None, OTHERS: None}
    worker.texts.put(0, b"b", "B")
    worker.write(2)


def test_what_another_process_has_open_is_not_removed(tmp_path: Path) -> None:
    stores = WindowStores(tmp_path)
    stores.open(0)
    stores.leave(0).close()
    with held_elsewhere(tmp_path / "0" / LOCK):
        assert stores.former() == {0}
        with pytest.raises(WindowsLocked):
            stores.drop(0)
    stores.drop(0)
    assert stores.former() == frozenset()


def test_what_was_found_damaged_is_removed_by_who_holds_its_lock(tmp_path: Path) -> None:
    """Another worker may have made it again, and be at work."""
    PartitionStore(tmp_path / "0", Memory()).close()
    (tmp_path / "0" / DAMAGED).touch()
    with held_elsewhere(tmp_path / "0" / LOCK):
        with pytest.raises(WindowsLocked):
            PartitionStore(tmp_path / "0", Memory())
        assert (tmp_path / "0" / CURRENT).exists()
    PartitionStore(tmp_path / "0", Memory()).close()
    assert not (tmp_path / "0" / DAMAGED).exists()


def test_what_cannot_be_made_anew_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RocksDB's own exception is none that a rebalance knows."""

    def refused(*_: object) -> object:
        raise Exception("Corruption: again and again\nand a second line")

    monkeypatch.setattr(rocksdict, "Rdict", refused)
    with pytest.raises(DataDirError, match="again and again; choose another"):
        PartitionStore(tmp_path / "0", Memory())


class TestRowsThatAreBrought:
    """A copy of a store is placed in a folder without one."""

    @pytest.fixture
    def copy(self, tmp_path: Path) -> Path:
        store = PartitionStore(tmp_path / "elsewhere", Memory())
        store.put(b"ta", b"A")
        store.commit(State(places={TEXTS: Place("one", 10, 1, 1_000)}))
        store.snapshot(tmp_path / "copy")
        store.close()
        return tmp_path / "copy"

    def rows(self, tmp_path: Path) -> bytes | None:
        store = PartitionStore(tmp_path / "0", Memory())
        found = store.get(b"ta")
        store.close()
        return found

    def test_they_are_there(self, tmp_path: Path, copy: Path) -> None:
        """Also where a former owner has left the file of its lock."""
        (tmp_path / "0").mkdir()
        (tmp_path / "0" / LOCK).touch()
        place_rows(copy, tmp_path / "0")
        assert self.rows(tmp_path) == b"A"

    def test_they_take_nobodys_place(self, tmp_path: Path, copy: Path) -> None:
        (tmp_path / "0").mkdir()
        with held_elsewhere(tmp_path / "0" / LOCK), pytest.raises(WindowsLocked):
            place_rows(copy, tmp_path / "0")
        PartitionStore(tmp_path / "0", Memory()).close()
        with pytest.raises(WindowsLocked):
            place_rows(copy, tmp_path / "0")
        assert self.rows(tmp_path) is None

    def test_what_a_kill_leaves_half_moved_is_no_store(
        self, tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rename = Path.rename

        def killed(self: Path, target: Path) -> Path:
            if self.name == CURRENT:
                raise KeyboardInterrupt
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            place_rows(copy, tmp_path / "0")
        monkeypatch.undo()
        assert (tmp_path / "0" / CURRENT).exists() is False
        assert self.rows(tmp_path) is None


def in_files(folder: Path, text: bytes) -> bool:
    return any(text in path.read_bytes() for path in folder.rglob("*") if path.is_file())


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "delete", "take", "written", "failed", "undo", "turn", "restart", "restore"]),
        st.sampled_from([b"a", b"b", b"c"]),
    ),
    max_size=40,
)


class Model:
    """What rows are by a plain dictionary: now, when changes were last taken, and in the changelog."""

    def __init__(self) -> None:
        self.now: dict[bytes, str] = {}
        self.taken: dict[bytes, str] = {}
        self.log: dict[bytes, str] = {}


@given(STEPS)
@examples(100)
def test_rows_on_the_disk_are_as_those_of_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("windows")
    worker, model = Worker(folder), Model()
    worker.open()
    under_way: list[Change] | None = None
    begun = worker.stores.begin()
    for number, (step, key) in enumerate(steps):
        text = f"{key.decode()}{number}"
        match step:
            case "put":
                worker.texts.put(0, key, text)
                model.now[key] = text
            case "delete":
                worker.texts.delete(0, key)
                model.now.pop(key, None)
            case "take" if under_way is None:
                begun, under_way = worker.stores.begin(), worker.texts.drain()
                model.taken = dict(model.now)
            case "written" if under_way is not None:
                worker.texts.written(under_way)
                worker.stores.commit(0, {TEXTS: (number, 1, 0)}, begun)
                model.log, under_way = dict(model.taken), None
            case "failed" if under_way is not None:
                worker.texts.requeue(under_way)
                under_way = None
            case "undo" if under_way is not None or model.log == model.taken:
                worker.texts.undo()
                model.now = dict(model.taken)
            case "turn":
                worker.texts.turn()
            case "restore" if under_way is None and not worker.texts.has_changes(0):
                worker.texts.restore(0, [(key, text.encode())])
                worker.stores.restored(TEXTS, 0, number, 1, 0)
                for rows in (model.now, model.taken, model.log):
                    rows[key] = text
            case "restart":
                close_stores(worker.stores)
                worker, under_way = Worker(folder), None
                worker.open()
                if not model.log:
                    assert worker.held() == {}
                model.now, model.taken = dict(model.log), dict(model.log)
        assert worker.held() == model.now
        assert {one: worker.texts.get(0, one) for one in (b"a", b"b", b"c")} == {
            one: model.now.get(one) for one in (b"a", b"b", b"c")
        }
    close_stores(worker.stores)


def test_no_more_rows_are_decoded_in_memory_than_are_allowed(opened: Callable[..., Worker]) -> None:
    resident = Resident(100_000)
    worker = opened(resident=resident)
    worker.open()
    for number in range(2_000):
        worker.texts.put(0, b"%d" % number, "x" * 100)
        if number % 10 == 9:
            worker.write(number)
    for number in range(2_000):
        assert worker.texts.get(0, b"%d" % number) == "x" * 100
        assert worker.texts.cached_bytes() <= 60_000
