"""Daily summaries as Markdown files, `<folder>/<user>/YYYY-MM-DD.md`, which people read and may edit."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from schemas.errors import SummaryFilesError, SummaryNotWritten, Unusable
from tables.summaries.day_format import begun, entry, entry_of, heading, lengthened, runs_in
from tables.summaries.day_part import DayMerge, joined, part_of, remade, text_of, without_part
from tables.summaries.user_folders import folder_of

#: Maximum number of attempts to read a file while another program keeps changing it.
_READINGS = 10
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\.md")
#: Number of lock files. The name of a user's folder selects one of them, so summaries of at most this many users can
#: be written at the same time.
_LOCKS = 16
#: Prefix of the name to which a forgotten user's folder is renamed before it is removed.
_FORGOTTEN = ".forgotten-"


class Written(NamedTuple):
    """The file to which a summary was written. `instead_of` is the first folder's file if that file is unusable."""

    path: Path
    instead_of: Unusable | None = None


class Already(NamedTuple):
    """The result if nothing was written, because a file already names one of the runs.

    `runs` are all runs that this file names.
    """

    path: Path
    runs: frozenset[uuid.UUID]


class DayFiles:
    """The files of all users, in one folder, and in a second one if the first cannot be written to.

    files = DayFiles(settings.data_dir / "memory", plan.fallback_dir)
    files.append("ann", date(2026, 1, 5), run_id, "## 📌 …", datetime.now(plan.timezone))    # Written or Already
    files.read("ann", date(2026, 1, 5))

    A summary is written completely or not at all, even if the process or the machine stops. A reader never sees a
    part of it, because a new file replaces the old one. Manual edits are kept. Any number of processes may write at
    the same time.
    """

    def __init__(self, folder: Path, fallback: Path | None = None) -> None:
        places = (place.resolve() for place in (folder, fallback) if place is not None)
        self._places = tuple(dict.fromkeys(places))  # no duplicates: the second would wait for the lock of the first
        self._left: dict[Path, None] = {}

    def append(
        self,
        user_id: str,
        day: date,
        run_id: uuid.UUID,
        text: str,
        at: datetime,
        *,
        others: Sequence[uuid.UUID] = (),
        merge: DayMerge | None = None,
    ) -> Written | Already:
        """Add the summary of a run, with its time in the user's zone. Repeated calls add it once.

        `others` are further runs that the same text answers; the file names them, too. If a file already names any of
        these runs, nothing is written: otherwise that run's summary could be in the file twice. With `merge`, the
        part at the beginning of the file, which sums up the day, is made in the same step.

        The first summary of a file follows the heading; each later one follows a separator. Raises
        `SummaryNotWritten` if neither folder can be written to; nothing of the summary is left behind.
        """
        runs = (run_id, *others)
        beginning, added = heading(user_id, day), entry(runs, text, at)
        paths = self._paths(user_id, day)
        unusable: list[Unusable] = []
        with contextlib.ExitStack() as locks:  # the first folder's lock is held while the second is written to
            for root, path in zip(self._places, paths, strict=True):
                try:
                    locks.enter_context(_locked(root, folder_of(user_id)))
                    contents = {one: _readable(one) for one in paths}
                    for one, content in contents.items():
                        there = frozenset(runs_in(content))
                        if not there.isdisjoint(runs):
                            return Already(one, there)
                    _change(path, partial(_with_entry, contents, path, beginning, added, merge))
                except OSError as exc:
                    unusable.append(Unusable.of(path, exc))
                else:
                    return Written(path, unusable[0] if unusable else None)
        raise SummaryNotWritten(unusable)

    def read(self, user_id: str, day: date) -> str | None:
        """Return the content of the day's file; None if there is no file.

        If both folders have such a file, return the contents of both, one after the other, with one of the parts that
        sum up the day.
        """
        found = [content for path in self._paths(user_id, day) if (content := _content(path)) is not None]
        if not found:
            return None
        return joined(found, heading(user_id, day)).decode("utf-8", "replace")

    def runs(self, user_id: str, day: date) -> tuple[uuid.UUID, ...]:
        """Return the runs that the day's files name, in the order of the text."""
        contents = (_content(path) or b"" for path in self._paths(user_id, day))
        return tuple(dict.fromkeys(run for content in contents for run in runs_in(content)))

    def dates(self, user_id: str, first: date = date.min, last: date = date.max) -> list[date]:
        """Return the days from `first` to `last` for which the user has a file, in order."""
        found: set[date] = set()
        for root in self._places:
            folder = root / folder_of(user_id)
            with _reading(folder), contextlib.suppress(FileNotFoundError, NotADirectoryError):
                found |= {day for path in folder.iterdir() if (day := _day_of(path.name)) is not None}
        return sorted(day for day in found if first <= day <= last)

    def forget(self, user_id: str, until: int | None = None) -> bool:
        """Remove all files of a user, in both folders; return whether there were any.

        With `until` (epoch ms), remove only files whose first summary was written up to that time, according to the
        times in the files. So a forget command that arrives late does not remove files that were begun after it.

        The folder is first renamed, to a name that does not reveal the user. So summaries that are written later are
        kept, and a later `sweep` can remove files that cannot be removed now, even after a restart. Raises
        `SummaryFilesError` if files are left; all other files are removed.
        """
        removed = False
        for root in self._places:
            folder = root / folder_of(user_id)
            old = [folder] if until is None else _begun_by(folder, until)
            try:
                if any(path.exists() for path in old):
                    with _locked(root), contextlib.suppress(FileNotFoundError):  # another process renamed `folder`
                        _put_aside(root, old)
                    removed = True
            except OSError:
                self._left |= dict.fromkeys(old)  # `sweep` removes them under their present names
        if unusable := self.sweep():
            raise SummaryFilesError("summaries could not be removed; the removal is tried again", unusable)
        return removed

    def sweep(self) -> list[Unusable]:
        """Remove the remaining files of forgotten users. Return the paths that cannot be removed, with reasons."""
        unusable = []
        for path in (*self._left, *(aside for root in self._places for aside in _aside(root))):
            shutil.rmtree(path, ignore_errors=True)  # removes all files that can be removed
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
    """Return the run's part of a day's file, without the comments that name runs; None if the file lacks the run."""
    return entry_of(run_id, without_part(markdown.encode("utf-8", "replace")).decode())


def merged_in(markdown: str) -> str | None:
    """Return the summary of the whole day with which a day's file begins; None if it has none."""
    part = part_of(markdown.encode("utf-8", "replace"))
    return None if part is None else text_of(part)


def _put_aside(root: Path, paths: Sequence[Path]) -> None:
    """Rename a folder as a whole, or move single files into a new folder, where `sweep` finds them."""
    aside = root / f"{_FORGOTTEN}{uuid.uuid4().hex}"
    if [path.parent for path in paths] == [root]:
        paths[0].rename(aside)
    else:
        aside.mkdir()
        for path in paths:
            path.rename(aside / path.name)
    _keep(root)


def _begun_by(folder: Path, until: int) -> list[Path]:
    """Return the day files whose first summary was written up to a time (epoch ms)."""
    try:
        return [path for path in folder.iterdir() if _begun(path) <= until]
    except OSError:
        return []


def _aside(root: Path) -> list[Path]:
    """Return the folders of forgotten users that are not removed yet."""
    try:
        return sorted(root.glob(f"{_FORGOTTEN}*"))
    except OSError:
        return []  # if the root cannot be read, the next write reports it


def _begun(path: Path) -> float:
    """Return the time of the file's first summary (epoch ms).

    If the file has no time that can be read, return the time of its last modification.
    """
    written = begun(_readable(path).decode("utf-8", "replace"))
    return path.stat().st_mtime * 1000 if written is None else written


def _day_of(name: str) -> date | None:
    found = _DAY.fullmatch(name)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def _content(path: Path) -> bytes | None:
    """Return a file's content; None if there is no such file. Raises `SummaryFilesError` if it cannot be read."""
    with _reading(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return path.read_bytes()
    return None


def _readable(path: Path) -> bytes:
    """Return a file's content; empty if it cannot be read.

    In that case, a run's summary may be written twice, which is better than not at all.
    """
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
    """Lock one user's folder of the root against other writers; without a name, lock all folders.

    If several users' folders are written at the same time, writing is five times as fast, because disks sync many
    files as quickly as one. Lock files are never removed, so that all processes lock the same files.
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


def _change(path: Path, changed: Callable[[bytes], bytes]) -> None:
    """Replace a file's content. If it raises OSError, the old file is unchanged, and no draft is left."""
    folder, draft = path.parent, path.with_name(f".{path.name}.tmp")
    try:
        folder.mkdir(exist_ok=True)
        for left in folder.glob(".*.md.tmp"):  # left by a process that was killed
            left.unlink()
        for _ in range(_READINGS):
            before = _stat(path)
            held = b"" if before is None else path.read_bytes()
            _write(draft, changed(held), None if before is None else before.st_mode)
            if _version(_stat(path)) == _version(before):
                break
        else:
            raise OSError(errno.EBUSY, "another process keeps changing it")
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()  # fails unless the folder is empty
        raise
    _keep(folder)
    if before is None:
        _keep(folder.parent)  # the folder may be new, so its entry is synced


def _with_entry(
    contents: Mapping[Path, bytes],
    path: Path,
    beginning: bytes,
    added: bytes,
    merge: DayMerge | None,
    held: bytes,
) -> bytes:
    """Return the content of the file at `path`, which is `held` now, with one more entry, and with the day's part.

    `contents` are the contents of all files of the day.
    """
    longer = lengthened(held, beginning, added)
    if merge is None:
        return longer
    return remade(
        [longer if one == path else content for one, content in contents.items()], [*contents].index(path), merge
    )


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
    """Sync a folder's list of files to the disk. Errors are ignored: the files are in the folder without it, too."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
