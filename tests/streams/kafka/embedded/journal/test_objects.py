"""Named values in a file that is only appended to."""

from __future__ import annotations

import errno
import os
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import JournalError
from streams.kafka.embedded.journal import objects as module
from streams.kafka.embedded.journal.objects import Kept, Objects
from tests.support.examples import examples

KEYS = st.sampled_from(["a", "b", "p/1", "p/2", "p/q/1", "p/q/2", "pq/1"])
#: A put of a value, or a deletion.
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=20)), max_size=20)


def contents(objects: Objects) -> dict[str, bytes | None]:
    return {key: objects.get(key) for key in objects}


def change(objects: Objects, changes: list[tuple[str, bytes | None]]) -> dict[str, bytes | None]:
    """Make them, in a journal and in a dictionary, which is returned."""
    expected: dict[str, bytes | None] = {}
    for key, value in changes:
        if value is None:
            objects.delete(key)
            expected.pop(key, None)
        else:
            objects.put(key, value)
            expected[key] = value
    return expected


@given(changes=CHANGES, again=CHANGES)
@examples(100)
def test_a_journal_is_a_dictionary_that_stays(
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[str, bytes | None]],
    again: list[tuple[str, bytes | None]],
) -> None:
    path = tmp_path_factory.mktemp("journal") / "log"
    objects = Objects(path)
    expected = change(objects, changes)
    assert contents(objects) == expected
    objects.close()
    objects = Objects(path)
    assert contents(objects) == expected
    objects.rewrite([Kept(key, value or b"", 1) for key, value in expected.items()])
    assert contents(objects) == expected
    change(objects, again)
    for key, value in again:
        expected.pop(key, None) if value is None else expected.update({key: value})
    objects.close()
    objects = Objects(path)
    assert contents(objects) == expected
    for prefix in ("", "p/", "p/q/", "pq/", "x/"):
        assert list(objects.within(prefix)) == [key for key in sorted(expected) if key.startswith(prefix)]
    objects.close()


@given(changes=CHANGES.filter(bool), data=st.data())
@examples(100)
def test_a_journal_that_was_cut_anywhere_is_one_of_its_past(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, bytes | None]], data: st.DataObject
) -> None:
    """And it takes what comes behind."""
    path = tmp_path_factory.mktemp("journal") / "log"
    objects = Objects(path)
    pasts: list[dict[str, bytes | None]] = [{}]
    for one in changes:
        change(objects, [one])
        pasts.append(contents(objects))
    objects.close()
    os.truncate(path, data.draw(st.integers(0, path.stat().st_size)))
    objects = Objects(path)
    assert contents(objects) in pasts
    objects.put("new", b"value")
    objects.close()
    objects = Objects(path)
    assert objects.get("new") == b"value"
    assert objects.cut == 0
    objects.close()


def test_what_is_cut_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "broker.log"
    objects = Objects(path)
    objects.put("a", b"whole")
    objects.close()
    with path.open("ab") as file:
        file.write(b"half a frame")
    objects = Objects(path)
    assert contents(objects) == {"a": b"whole"}
    assert objects.cut == len(b"half a frame")
    aside = tmp_path / "broker.cut"
    assert aside.read_bytes() == b"half a frame"
    objects.rewrite([Kept("a", b"whole", 1)])
    assert {file.stat().st_mode & 0o777 for file in (path, aside)} == {0o600}, "it is nobody else's"
    objects.close()


def test_what_is_cut_again_lies_beside_what_was_cut_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, in as many pieces as it takes: one read gives 2 GiB at the most."""
    path, torn = tmp_path / "broker.log", [b"half a frame", b"another half", b"and one more"]
    monkeypatch.setattr(module, "COPIED_BYTES", 5)
    Objects(path).close()
    for left in torn:
        with path.open("ab") as file:
            file.write(left)
        objects = Objects(path)
        assert objects.cut_to.read_bytes() == left
        objects.close()
    assert [(tmp_path / f"broker.cut{n}").read_bytes() for n in ("", 1, 2)] == torn
    Objects(path).close()
    assert len(list(tmp_path.iterdir())) == 4


def test_who_waits_for_it_gets_the_one_that_is_in_its_place_then(tmp_path: Path) -> None:
    """A rewritten journal is another file: records appended to the old one would be lost."""
    path, opened = tmp_path / "broker.log", list[Objects]()
    objects, asked = Objects(path), threading.Event()

    def wait() -> None:
        asked.set()
        opened.append(Objects(path))

    waiting = threading.Thread(target=wait)
    waiting.start()
    asked.wait()
    old = path.stat().st_ino
    while not any(_inode(one) == old for one in _descriptors() if one != objects._file):
        waiting.join(0.01)
    objects.rewrite([Kept("a", b"1", 1)])
    waiting.join(0.5)
    assert opened == [], "it was let in beside the one that has it"
    objects.close()
    waiting.join()
    (late,) = opened
    late.put("b", b"2")
    late.close()
    again = Objects(path)
    assert contents(again) == {"a": b"1", "b": b"2"}
    again.close()


def _descriptors() -> list[int]:
    return [int(one.name) for one in Path("/proc/self/fd").iterdir()]


def _inode(file: int) -> int:
    try:
        return os.fstat(file).st_ino
    except OSError:
        return 0


@pytest.mark.parametrize("somebodys", [b"a text that somebody wrote, and wants to keep", b"{}" * 100])
def test_a_file_of_somebody_elses_is_left_alone(tmp_path: Path, somebodys: bytes) -> None:
    path = tmp_path / "broker.log"
    path.write_bytes(somebodys)
    with pytest.raises(JournalError, match="move it away"):
        Objects(path)
    assert path.read_bytes() == somebodys


def test_two_processes_do_not_write_into_one_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.0)
    objects = Objects(tmp_path / "broker.log")
    with pytest.raises(JournalError, match="another siltstone dev has it: end that one first"):
        Objects(tmp_path / "broker.log")
    objects.rewrite([Kept("a", b"1", 1)])  # the new file is locked as the old one was
    with pytest.raises(JournalError, match="another siltstone dev has it"):
        Objects(tmp_path / "broker.log")
    objects.close()
    Objects(tmp_path / "broker.log").close()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[int]:
    """Bytes that a file may have: to whoever writes, a full disk."""
    most = 4_000
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    yield most
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_takes_nothing_of_what_was_put(tmp_path: Path, room: int) -> None:
    """Half a frame at the end is cut off at once, so that smaller ones still find their room, and are read."""
    objects = Objects(tmp_path / "broker.log")
    expected: dict[str, bytes | None] = {}
    for i in range(3):
        objects.put(f"key {i}", b"x" * 1_000)
        expected[f"key {i}"] = b"x" * 1_000
    with pytest.raises(JournalError, match="File too large: make room, and start again"):
        objects.put("key 3", b"x" * 1_000)
    objects.put("small", b"y")
    with pytest.raises(JournalError):
        objects.rewrite([Kept("large", b"x" * room, 1)])
    assert not (tmp_path / "broker.new").exists()
    assert contents(objects) == {**expected, "small": b"y"}
    objects.close()
    objects = Objects(tmp_path / "broker.log")
    assert contents(objects) == {**expected, "small": b"y"}
    objects.close()


def test_a_disk_that_does_not_take_what_was_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    objects = Objects(tmp_path / "broker.log")
    objects.put("a", b"1")
    monkeypatch.setattr(os, "fdatasync", refuse)
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(JournalError, match="Input/output error"):
        objects.sync()
    objects.close()


def test_each_put_has_a_tag_of_its_own(tmp_path: Path) -> None:
    objects = Objects(tmp_path / "broker.log")
    tags = {objects.put("a", b"1").tag, objects.put("a", b"1").tag, objects.put("b", b"1").tag}
    assert len(tags) == 3
    objects.close()
