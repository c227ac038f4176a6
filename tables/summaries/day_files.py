"""Daily summaries as Markdown files: `<folder>/<user>/YYYY-MM-DD.md`, which people read, and may edit."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import uuid
import zlib
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple

from schemas.errors import SummaryFilesError, SummaryNotWritten, Unusable
from tables.summaries.user_folders import folder_of

SEPARATOR = b"\n---\n\n"
#: How often a file is read that is edited at the same moment.
_READINGS = 10
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\.md")
#: Summaries of so many users, by their folders' names, may be written at the same time.
_LOCKS = 16
_OTHER_RUNS = re.compile(r"\A(?:<!-- run: [0-9a-f-]{36} -->\n)+")
#: Before the name of a folder that was a forgotten user's.
_FORGOTTEN = ".forgotten-"
_STAMP = re.compile(r"^<!-- run: \S{36} -->\n\*([^*\n]+)\*$", re.MULTILINE)
_RUN = re.compile(rb"^<!-- run: ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}) -->", re.MULTILINE)


class Written(NamedTuple):
    """Where a summary stands now. `instead_of`: it is the second place, because this one is unusable."""

    path: Path
    instead_of: Unusable | None = None


class Already(NamedTuple):
    """Where the summary of one of the runs has been standing: nothing was written. `runs` are those in that file."""

    path: Path
    runs: frozenset[uuid.UUID]


class DayFiles:
    """The files of all users, in one folder, and in a second one where the first cannot be written to.

    files = DayFiles(settings.data_dir / "memory", plan.fallback_dir)
    files.append("ann", date(2026, 1, 5), run_id, "## 📌 …", datetime.now(plan.timezone))    # Written or Already
    files.read("ann", date(2026, 1, 5))

    An addition is written completely or not at all, even if the process or the machine stops, and a reader never sees
    half of one: a new file replaces the old one. Manual edits are kept. Any number of processes may write at the same
    time.
    """

    def __init__(self, folder: Path, fallback: Path | None = None) -> None:
        places = (place.resolve() for place in (folder, fallback) if place is not None)
        self._places = tuple(dict.fromkeys(places))  # twice the same place would wait for its own lock
        self._left: dict[Path, None] = {}

    def append(
        self, user_id: str, day: date, run_id: uuid.UUID, text: str, at: datetime, *, others: Sequence[uuid.UUID] = ()
    ) -> Written | Already:
        """Add what a run wrote at a time (in the user's zone); once, however often it is told to.

        `others` are runs that the same text answers: each of them stands in the file with it. Where any of all these
        runs stands there already, nothing is written: its words may be in the text, and would be there twice.

        The first run of a file writes the heading, every later one is set apart from what is there. Raises
        `SummaryNotWritten` where no place can be written to; nothing of it stays behind.
        """
        runs = (run_id, *others)
        heading, entry = _heading(user_id, day), _entry(runs, text, at)
        paths = self._paths(user_id, day)
        unusable: list[Unusable] = []
        with contextlib.ExitStack() as locks:  # the first place's is held while the second is written to
            for root, path in zip(self._places, paths, strict=True):
                try:
                    locks.enter_context(_locked(root, folder_of(user_id)))
                    for one in paths:
                        there = frozenset(_runs_in(_readable(one)))
                        if not there.isdisjoint(runs):
                            return Already(one, there)
                    _add(path, heading, entry)
                except OSError as exc:
                    unusable.append(Unusable.of(path, exc))
                else:
                    return Written(path, unusable[0] if unusable else None)
        raise SummaryNotWritten(unusable)

    def read(self, user_id: str, day: date) -> str | None:
        """The day's file; both one after the other, where there is one in each place. None where there is none."""
        found = [content for path in self._paths(user_id, day) if (content := _content(path)) is not None]
        if not found:
            return None
        heading = _heading(user_id, day)
        rest = (content.removeprefix(heading) for content in found[1:])
        return SEPARATOR.join((found[0], *rest)).decode("utf-8", "replace")

    def runs(self, user_id: str, day: date) -> tuple[uuid.UUID, ...]:
        """The runs whose summaries stand in the day's file."""
        contents = (_content(path) or b"" for path in self._paths(user_id, day))
        return tuple(dict.fromkeys(run for content in contents for run in _runs_in(content)))

    def dates(self, user_id: str, first: date = date.min, last: date = date.max) -> list[date]:
        """The days from `first` to `last` of which the user has a file, in order."""
        found: set[date] = set()
        for root in self._places:
            folder = root / folder_of(user_id)
            with _reading(folder), contextlib.suppress(FileNotFoundError, NotADirectoryError):
                found |= {day for path in folder.iterdir() if (day := _day_of(path.name)) is not None}
        return sorted(day for day in found if first <= day <= last)

    def forget(self, user_id: str, until: int | None = None) -> bool:
        """Remove all that there is of a user, in both places; whether there was anything.

        With `until` (epoch ms), only files into which something was written up to then, by what they say themselves:
        who hears of it late keeps what was written since.

        The folder is put aside first, under a name that says nothing: what is written from then on is kept, and what
        cannot be removed is removed by a later `sweep`, also after a restart. Raises `SummaryFilesError` where
        something is left; the rest is gone all the same.
        """
        removed = False
        for root in self._places:
            folder = root / folder_of(user_id)
            old = [folder] if until is None else _begun_by(folder, until)
            try:
                if any(path.exists() for path in old):
                    with _locked(root), contextlib.suppress(FileNotFoundError):  # another did it meanwhile
                        _put_aside(root, old)
                    removed = True
            except OSError:
                self._left |= dict.fromkeys(old)  # where it lies, then
        if unusable := self.sweep():
            raise SummaryFilesError("summaries could not be removed, which is tried again", unusable)
        return removed

    def sweep(self) -> list[Unusable]:
        """Remove what is left of forgotten users; what still cannot be, and why."""
        unusable = []
        for path in (*self._left, *(aside for root in self._places for aside in _aside(root))):
            shutil.rmtree(path, ignore_errors=True)  # as much as can be
            try:
                with contextlib.suppress(FileNotFoundError):
                    path.unlink() if path.is_file() else shutil.rmtree(path)
                    _keep(path.parent)
            except OSError as exc:
                unusable.append(Unusable.of(path, exc))
            else:
                self._left.pop(path, None)
        return unusable

    def _paths(self, user_id: str, day: date) -> tuple[Path, ...]:
        return tuple(root / folder_of(user_id) / f"{day.isoformat()}.md" for root in self._places)


def written_by(run_id: uuid.UUID, markdown: str) -> str | None:
    """The run's part of a day's file, without the marks; None where the run has not written into it."""
    _, begun, rest = markdown.partition(f"<!-- run: {run_id} -->\n")
    return _OTHER_RUNS.sub("", rest.partition(f"{SEPARATOR.decode()}<!-- run: ")[0]).strip() if begun else None


def _heading(user_id: str, day: date) -> bytes:
    """Day and user, with a replacement for characters that cannot be shown; below it, as JSON, the id itself."""
    quoted = json.dumps(user_id).replace("<", "\\u003c").replace(">", "\\u003e")
    shown = "".join(char if char.isprintable() and char not in "<>&" else "�" for char in user_id)
    return f"# {day.isoformat()} · {shown}\n\n<!-- user: {quoted} -->\n\n".encode()


def _entry(runs: Sequence[uuid.UUID], text: str, at: datetime) -> bytes:
    """A summary under its time. None of its lines can pass for the beginning of another run."""
    marks = "".join(f"<!-- run: {run} -->\n" for run in runs)
    body = text.strip().replace("<!-- run:", "&lt;!-- run:")
    stamp = at.isoformat(sep=" ", timespec="seconds")
    return f"{marks}*{stamp}*\n\n{body}\n".encode("utf-8", "replace")


def _runs_in(content: bytes) -> dict[uuid.UUID, None]:
    """In their order."""
    return {uuid.UUID(found.decode()): None for found in _RUN.findall(content)}


def _put_aside(root: Path, paths: Sequence[Path]) -> None:
    """Under a name of its own, where `sweep` finds it: a folder as a whole, or files of one in another."""
    aside = root / f"{_FORGOTTEN}{uuid.uuid4().hex}"
    if [path.parent for path in paths] == [root]:
        paths[0].rename(aside)
    else:
        aside.mkdir()
        for path in paths:
            path.rename(aside / path.name)
    _keep(root)


def _begun_by(folder: Path, until: int) -> list[Path]:
    """The day files into which something was written up to a moment (epoch ms)."""
    try:
        return [path for path in folder.iterdir() if _begun(path) <= until]
    except OSError:
        return []


def _aside(root: Path) -> list[Path]:
    """Folders of forgotten users that are not removed yet."""
    try:
        return sorted(root.glob(f"{_FORGOTTEN}*"))
    except OSError:
        return []  # a root that cannot be read says so where something is to be written


def _begun(path: Path) -> float:
    """When the first of it was written, in epoch ms: by the times over its summaries, else by the file's own."""
    content = _readable(path).decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        if times := [datetime.fromisoformat(stamp).timestamp() for stamp in _STAMP.findall(content)]:
            return min(times) * 1000
    return path.stat().st_mtime * 1000


def _day_of(name: str) -> date | None:
    found = _DAY.fullmatch(name)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def _content(path: Path) -> bytes | None:
    """None where there is no such file. Raises `SummaryFilesError` where it cannot be read."""
    with _reading(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return path.read_bytes()
    return None


def _readable(path: Path) -> bytes:
    """What can be read of it: a run in a file that cannot be is written once more, rather than not at all."""
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise SummaryFilesError("summaries cannot be read", [Unusable.of(path, exc)]) from exc


@contextlib.contextmanager
def _locked(root: Path, folder: str | None = None) -> Iterator[None]:
    """Lock this folder of the root against other writers, or all folders where none is named.

    Writing into several users' folders at the same time is five times as fast, because disks sync many files as
    quickly as one. The lock files stay, so that all processes lock the same ones.
    """
    root.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        _hold(held, root / ".lock", fcntl.LOCK_EX if folder is None else fcntl.LOCK_SH)
        if folder is not None:
            _hold(held, root / f".{zlib.crc32(folder.encode()) % _LOCKS:02}.lock", fcntl.LOCK_EX)
        yield


def _hold(held: contextlib.ExitStack, path: Path, how: int) -> None:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    held.callback(os.close, lock)
    fcntl.flock(lock, how)


def _add(path: Path, heading: bytes, entry: bytes) -> None:
    """Put a longer file in the place of a file. Raises OSError, with nothing left of what it did."""
    folder, draft = path.parent, path.with_name(f".{path.name}.tmp")
    try:
        folder.mkdir(exist_ok=True)
        for left in folder.glob(".*.md.tmp"):  # by a process that was killed
            left.unlink()
        for _ in range(_READINGS):
            before = _stat(path)
            held = b"" if before is None else path.read_bytes()
            _write(draft, _longer(held, heading, entry), None if before is None else before.st_mode)
            if _version(_stat(path)) == _version(before):
                break
        else:
            raise OSError(errno.EBUSY, "another process keeps changing it")
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()  # where it is empty
        raise
    _keep(folder)
    if before is None:
        _keep(folder.parent)  # which may have the folder since now


def _longer(held: bytes, heading: bytes, entry: bytes) -> bytes:
    if not held.strip():
        return heading + entry
    return held + (b"" if held.endswith(b"\n") else b"\n") + SEPARATOR + entry


def _write(path: Path, content: bytes, mode: int | None) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        if mode is not None:
            os.fchmod(file.fileno(), mode & 0o777)
        os.fsync(file.fileno())


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _version(stat: os.stat_result | None) -> tuple[int, int, int] | None:
    return None if stat is None else (stat.st_ino, stat.st_size, stat.st_mtime_ns)


def _keep(folder: Path) -> None:
    """Have the disk know the folder's names. Where it cannot be told, they stand there all the same."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
