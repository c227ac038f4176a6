"""Stores named values, the objects of the embedded broker, in a journal file, with an index in memory."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import time
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from schemas.errors import JournalError
from schemas.times import now_ms
from streams.kafka.embedded.journal.frames import HEAD_BYTES, framed, read_frames
from tables.paths import sync_data, synced

#: The head of each entry: its kind (`_PUT` or `_DELETE`), the length of its key in bytes, and the time of the put
#: (epoch ms).
_HEAD: Final = struct.Struct("<BHQ")
_PUT, _DELETE = 1, 2
#: The body of the file's first frame. A file without it belongs to another program or version. Such a file is
#: refused, and left unchanged.
MAGIC: Final = b"siltstone journal 1\n"
#: Maximum bytes of each step in which the damaged end of a journal is copied to another file.
COPIED_BYTES: Final = 1 << 20
#: Maximum seconds to wait for the lock of the journal. Another process that holds the lock may be about to end.
LOCK_SECONDS: Final = 10.0


class Place(NamedTuple):
    """The place of a value in the file, in bytes, and the time of its put (`when`, epoch ms).

    Each put has a different `tag`.
    """

    start: int
    length: int
    when: int
    tag: int


class Kept(NamedTuple):
    """An object that a rewrite of the journal keeps. `when` is the time of its put (epoch ms)."""

    key: str
    value: bytes
    when: int


class Objects:
    """The values that were put and not deleted, by key. A key is a path with slashes.

    Memory has only the places of the values in the file. A value is in the file when `put` returns, and on the disk
    after the next `sync`. So a kill of the process loses nothing. A power cut loses the puts since the last `sync`.
    """

    def __init__(self, path: Path) -> None:
        """Open, lock and read the file. Raises `JournalError` if another process uses it, or it is unreadable."""
        self.path = path
        self._places: dict[str, Place] = {}
        self._folders: dict[str, list[str]] = {}
        self._changes: Counter[str] = Counter()
        self._tag = 0
        #: The number of bytes of a partial frame that were cut off the journal's end, and the file that has them.
        self.cut, self.cut_to = 0, path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _locked(path)
        except OSError as exc:
            raise refused(path, exc) from exc
        try:
            self._end = self._replay()
        except OSError as exc:
            os.close(self._file)
            raise refused(path, exc) from exc
        except JournalError:
            os.close(self._file)
            raise
        self._dirty = False

    @property
    def length(self) -> int:
        """The length of the file in bytes."""
        return self._end

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def find(self, key: str) -> Place | None:
        return self._places.get(key)

    def get(self, key: str) -> bytes | None:
        place = self._places.get(key)
        return None if place is None else self.read(place)

    def read(self, place: Place) -> bytes:
        return os.pread(self._file, place.length, place.start)

    def put(self, key: str, value: bytes) -> Place:
        """Append the value to the file.

        Raises `JournalError` if this fails. After an error, the file has all earlier puts, but not this one.
        """
        now = now_ms()
        self._append(_frame(_PUT, key, now, value))
        return self._note(key, self._end - len(value), len(value), now)

    def delete(self, key: str) -> None:
        """Delete the value, if there is one. Raises `JournalError` as `put` does."""
        if key in self._places:
            self._append(_frame(_DELETE, key, 0))
            self._forget(key)

    def within(self, prefix: str, start: int = 0) -> Iterator[str]:
        """Return the keys with this prefix in order, without the first `start` ones."""
        folder = prefix.removesuffix("/")
        if prefix.endswith("/") and self.is_lowest(folder):
            return islice(self._folders[folder], start, None)
        return islice(sorted(key for key in self._places if key.startswith(prefix)), start, None)

    def is_lowest(self, folder: str) -> bool:
        """Return True if the folder has keys and no subfolders."""
        return folder in self._folders and not any(one.startswith(f"{folder}/") for one in self._folders)

    def changes(self, folder: str) -> int:
        """Return the number of changes of the folder. New keys that come after all other keys do not count."""
        return self._changes.get(folder, 0)

    def sync(self) -> None:
        """Write all puts to the disk. Raises `JournalError` if this fails."""
        if self._dirty:
            self._dirty = False  # set first, because the next sync must write the puts made during this one
            try:
                sync_data(self._file)
            except OSError as exc:
                raise refused(self.path, exc) from exc

    def rewrite(self, kept: Iterable[Kept]) -> None:
        """Replace the content by `kept`. If this fails, leave the file as it was, and raise `JournalError`.

        The new file replaces the old one when it is complete and on the disk.
        """
        draft = self.path.with_suffix(".new")
        try:
            with _private(draft) as file:
                file.write(framed(MAGIC))
                for key, value, when in kept:
                    file.write(_frame(_PUT, key, when, value))
                file.flush()
                os.fsync(file.fileno())
            renewed = os.open(draft, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            _lock(renewed, draft)
            draft.replace(self.path)
            synced(self.path.parent)
        except OSError as exc:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise refused(self.path, exc) from exc
        os.close(self._file)
        self._file = renewed
        self._places, self._folders = {}, {}
        self._end = self._replay()

    def close(self) -> None:
        try:
            self.sync()
        finally:
            os.close(self._file)

    def _append(self, frame: bytes) -> None:
        written = 0
        try:
            while written < len(frame):
                written += os.write(self._file, frame[written:] if written else frame)
        except OSError as exc:
            if written:  # cut off the partial frame: otherwise the next frame would follow it
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._end)
            raise refused(self.path, exc) from exc
        self._end += written
        self._dirty = True

    def _replay(self) -> int:
        """Read the file, cut a partial frame off its end, and return its length. Raises OSError, `JournalError`."""
        os.lseek(self._file, 0, os.SEEK_SET)
        length = os.fstat(self._file).st_size
        end = 0
        with os.fdopen(os.dup(self._file), "rb", buffering=1 << 20) as file:
            for start, body in read_frames(file):
                end = start + len(body)
                if start == HEAD_BYTES:
                    if body != MAGIC:
                        raise JournalError(self.path, "another version wrote it", "move it away, or upgrade")
                    continue
                self._apply(start, body)
        if not end and length > HEAD_BYTES + len(MAGIC):
            raise JournalError(self.path, "it is not a journal", "move it away, or name another folder with --data")
        self.cut = length - end
        if self.cut:
            self.cut_to = _put_aside(self._file, end, self.path)
            os.ftruncate(self._file, end)
        if not end:
            os.write(self._file, frame := framed(MAGIC))
            end = len(frame)
            os.fsync(self._file)
            synced(self.path.parent)
        return end

    def _apply(self, start: int, body: bytes) -> None:
        kind, name_bytes, when = _HEAD.unpack_from(body)
        key = body[_HEAD.size : _HEAD.size + name_bytes].decode()
        if kind == _DELETE:
            self._forget(key)
        else:
            before = _HEAD.size + name_bytes
            self._note(key, start + before, len(body) - before, when)

    def _note(self, key: str, start: int, length: int, when: int) -> Place:
        folder = key.rpartition("/")[0]
        keys = self._folders.setdefault(folder, [])
        if key in self._places or (keys and key < keys[-1]):
            self._changes[folder] += 1
        if key not in self._places:
            insort(keys, key)
        self._tag += 1
        place = self._places[key] = Place(start, length, when, self._tag)
        return place

    def _forget(self, key: str) -> None:
        if self._places.pop(key, None) is not None:
            folder = key.rpartition("/")[0]
            keys = self._folders[folder]
            del keys[bisect_left(keys, key)]
            self._changes[folder] += 1
            if not keys:
                del self._folders[folder]


def _frame(kind: int, key: str, when: int, value: bytes = b"") -> bytes:
    name = key.encode()
    return framed(_HEAD.pack(kind, len(name), when), name, value)


def _private(path: Path) -> BinaryIO:
    """Open an empty file that only its owner may read, because it will contain users' messages."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb")


def _put_aside(file: int, start: int, path: Path) -> Path:
    """Copy the bytes from `start` to the end into a new file, sync the new file, and return its path.

    A file of an earlier call is not overwritten.
    """
    for number in count():
        aside = path.with_suffix(f".cut{number or ''}")
        with contextlib.suppress(FileExistsError):
            copy = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            break
    with os.fdopen(copy, "wb") as written:
        while part := os.pread(file, COPIED_BYTES, start):  # in pieces, because one call returns at most 2 GiB
            written.write(part)
            start += len(part)
        written.flush()
        os.fsync(written.fileno())
    return aside


def refused(path: Path, exc: OSError) -> JournalError:
    """Return the `JournalError` for an error of the operating system."""
    reason = exc.strerror or type(exc).__name__
    full = exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return JournalError(path, reason, "make room, and start again" if full else "correct that, and start again")


def _locked(path: Path) -> int:
    """Open and lock the file. If another process replaced the file meanwhile, open and lock the new one.

    Raises `JournalError`, OSError.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            _lock(file, path)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _lock(file: int, path: Path) -> None:
    """Lock the file. Raises `JournalError` if another process holds the lock for longer than `LOCK_SECONDS`."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as exc:
            if exc.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            if time.monotonic() > deadline:
                raise JournalError(path, "another siltstone dev has it", "end that one first") from exc
        time.sleep(0.05)
