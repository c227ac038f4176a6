"""The daily files, on a real disk: what stands in them, whatever happens to process, disk or rights meanwhile."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.errors import SummaryFilesError, SummaryNotWritten
from tables.summaries.day_files import Already, DayFiles, Written, written_by
from tables.summaries.user_folders import folder_of

ROOT = Path(__file__).parents[3]
DAY = date(2026, 1, 5)
EVENING = datetime(2026, 1, 5, 18, 30, tzinfo=timezone(timedelta(hours=8)))
RUN, NEXT, THIRD = (uuid.UUID(int=place) for place in (1, 2, 3))


@pytest.fixture
def files(tmp_path: Path) -> DayFiles:
    return DayFiles(tmp_path / "memory", tmp_path / "second")


def everything(folder: Path) -> set[str]:
    """What there is below a folder, but for the locks and the folders themselves."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
    return {path for path in found if not path.endswith(".lock")}


# What stands in a file


def test_the_first_run_writes_a_heading_with_day_and_user(files: DayFiles, tmp_path: Path) -> None:
    written = files.append("ann", DAY, RUN, "## 📌 主要话题\n\n- 花生\n", EVENING)
    path = tmp_path / "memory" / "ann" / "2026-01-05.md"
    assert written == Written(path, None)
    assert path.read_text(encoding="utf-8") == (
        "# 2026-01-05 · ann\n\n"
        '<!-- user: "ann" -->\n\n'
        f"<!-- run: {RUN} -->\n"
        "*2026-01-05 18:30:00+08:00*\n\n"
        "## 📌 主要话题\n\n- 花生\n"
    )


def test_each_later_run_is_set_apart_with_its_time(files: DayFiles) -> None:
    """What was there stays, byte for byte."""
    files.append("ann", DAY, RUN, "one", EVENING)
    before = files.read("ann", DAY)
    assert before is not None
    files.append("ann", DAY, NEXT, "two\n\n", EVENING + timedelta(hours=1))
    assert files.read("ann", DAY) == (f"{before}\n---\n\n<!-- run: {NEXT} -->\n*2026-01-05 19:30:00+08:00*\n\ntwo\n")
    assert files.runs("ann", DAY) == (RUN, NEXT)


def test_a_run_that_comes_again_writes_nothing(files: DayFiles, tmp_path: Path) -> None:
    """However often, and whatever its text is now."""
    files.append("ann", DAY, RUN, "one", EVENING)
    files.append("ann", DAY, NEXT, "two", EVENING)
    before = files.read("ann", DAY)
    for run in (RUN, NEXT, RUN):
        found = files.append("ann", DAY, run, "other", EVENING)
        assert found == Already(tmp_path / "memory/ann/2026-01-05.md", frozenset({RUN, NEXT}))
    assert files.read("ann", DAY) == before


def test_one_text_may_answer_several_runs(files: DayFiles) -> None:
    """Each of them stands in the file, and has that text."""
    files.append("ann", DAY, RUN, "one", EVENING, others=[NEXT])
    files.append("ann", DAY, THIRD, "two", EVENING)
    markdown = files.read("ann", DAY) or ""
    assert files.runs("ann", DAY) == (RUN, NEXT, THIRD)
    assert markdown.count("one") == 1
    written = {run: written_by(run, markdown) for run in (RUN, NEXT, THIRD)}
    stamp = "*2026-01-05 18:30:00+08:00*"
    assert written == {RUN: f"{stamp}\n\none", NEXT: f"{stamp}\n\none", THIRD: f"{stamp}\n\ntwo"}


def test_where_one_of_several_runs_stands_nothing_is_written(files: DayFiles, tmp_path: Path) -> None:
    """Its words may be in the text."""
    files.append("ann", DAY, RUN, "one", EVENING)
    before = files.read("ann", DAY)
    for runs in ((RUN, NEXT), (NEXT, RUN)):
        found = files.append("ann", DAY, runs[0], "both", EVENING, others=runs[1:])
        assert found == Already(tmp_path / "memory/ann/2026-01-05.md", frozenset({RUN}))
    assert files.read("ann", DAY) == before


def test_each_user_and_each_day_has_a_file(files: DayFiles, tmp_path: Path) -> None:
    """The same run may be another's."""
    for user in ("ann", "Ann", "../bo", "小明"):
        for day in (DAY, DAY + timedelta(days=1)):
            assert isinstance(files.append(user, day, RUN, f"{user} on {day}", EVENING), Written)
    assert everything(tmp_path) == {
        f"memory/{folder_of(user)}/2026-01-0{day}.md" for user in ("ann", "Ann", "../bo", "小明") for day in (5, 6)
    }
    assert "Ann on 2026-01-06" in (files.read("Ann", DAY + timedelta(days=1)) or "")


@given(st.text(min_size=1, max_size=60))
@example("--><!-- run: 00000000-0000-0000-0000-000000000002 -->")
def test_the_heading_holds_the_users_id_as_it_is(user_id: str) -> None:
    """Whatever it is made of: it breaks neither the heading nor the comment, and is no run."""
    with tempfile.TemporaryDirectory() as folder:
        files = DayFiles(Path(folder))
        files.append(user_id, DAY, RUN, "one", EVENING)
        lines = (files.read(user_id, DAY) or "").split("\n")
        quoted = re.fullmatch(r"<!-- user: (.*) -->", lines[2])
        assert quoted is not None
        assert "-->" not in quoted[1]
        assert json.loads(quoted[1]) == user_id
        assert lines[0].startswith("# 2026-01-05 · ")
        assert lines[0].isprintable()
        assert (lines[1], lines[4]) == ("", f"<!-- run: {RUN} -->")
        assert files.runs(user_id, DAY) == (RUN,)


def test_no_text_passes_for_a_run(files: DayFiles) -> None:
    """A conversation that quotes the mark of a run to come does not keep it from being written."""
    files.append("ann", DAY, RUN, f"they said\n<!-- run: {NEXT} -->\n", EVENING)
    files.append(f"\n<!-- run: {NEXT} -->\n", DAY, RUN, "x", EVENING)
    assert files.runs("ann", DAY) == (RUN,)
    assert isinstance(files.append("ann", DAY, NEXT, "two", EVENING), Written)
    assert isinstance(files.append(f"\n<!-- run: {NEXT} -->\n", DAY, NEXT, "two", EVENING), Written)


def test_half_a_character_is_written_as_a_question_mark(files: DayFiles) -> None:
    files.append("ann", DAY, RUN, "a\ud83db", EVENING)
    assert (files.read("ann", DAY) or "").endswith("\n\na?b\n")


# Files that people edit


@pytest.mark.parametrize(
    "edited",
    [
        b"my own notes, without a line end",
        b"# Changed\r\n\r\nWindows lines\r\n",
        b"\xef\xbb\xbf# With a byte order mark\n",
        "编码是另一种\n".encode("gb18030"),
        b"\xff\xfe no text at all \x00\n",
    ],
)
def test_what_somebody_edited_stays(files: DayFiles, tmp_path: Path, edited: bytes) -> None:
    """Byte for byte, whatever the encoding, above the next run."""
    files.append("ann", DAY, RUN, "one", EVENING)
    path = tmp_path / "memory" / "ann" / "2026-01-05.md"
    path.write_bytes(edited)
    files.append("ann", DAY, NEXT, "two", EVENING)
    content = path.read_bytes()
    assert content.startswith(edited)
    assert re.match(rb"\n---\n\n<!-- run: ", content.removeprefix(edited.removesuffix(b"\n") + b"\n"))
    assert files.runs("ann", DAY) == (NEXT,)
    assert (files.read("ann", DAY) or "").endswith("two\n")


@pytest.mark.parametrize("left", [b"", b"\n \n"])
def test_a_file_that_somebody_emptied_begins_anew(files: DayFiles, tmp_path: Path, left: bytes) -> None:
    files.append("ann", DAY, RUN, "one", EVENING)
    (tmp_path / "memory" / "ann" / "2026-01-05.md").write_bytes(left)
    files.append("ann", DAY, NEXT, "two", EVENING)
    assert (files.read("ann", DAY) or "").startswith("# 2026-01-05 · ann\n")


def test_its_rights_stay_too(files: DayFiles, tmp_path: Path) -> None:
    files.append("ann", DAY, RUN, "one", EVENING)
    path = tmp_path / "memory" / "ann" / "2026-01-05.md"
    path.chmod(0o640)
    files.append("ann", DAY, NEXT, "two", EVENING)
    assert path.stat().st_mode & 0o777 == 0o640


def test_an_edit_between_reading_and_writing_stays(
    files: DayFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.append("ann", DAY, RUN, "one", EVENING)
    path = tmp_path / "memory" / "ann" / "2026-01-05.md"
    real, edits = os.fsync, iter([b"first edit\n", b"second edit\n"])

    def edited_meanwhile(handle: int) -> None:
        real(handle)
        if edit := next(edits, None):
            path.write_bytes(edit)

    monkeypatch.setattr(os, "fsync", edited_meanwhile)
    files.append("ann", DAY, NEXT, "two", EVENING)
    assert path.read_bytes().startswith(b"second edit\n\n---\n")


def test_a_file_that_changes_all_the_time_is_left_alone(
    files: DayFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary goes to the second place."""
    files.append("ann", DAY, RUN, "one", EVENING)
    path = tmp_path / "memory" / "ann" / "2026-01-05.md"
    real = os.fsync

    def edited_meanwhile(handle: int) -> None:
        real(handle)
        with path.open("ab") as file:
            file.write(b"more\n")

    monkeypatch.setattr(os, "fsync", edited_meanwhile)
    written = files.append("ann", DAY, NEXT, "two", EVENING)
    assert isinstance(written, Written)
    assert (written.path.parts[-3], written.instead_of and written.instead_of.errno) == ("second", errno.EBUSY)


# The second place


@contextlib.contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """The folder is read-only; tests that run as root are nobody meanwhile."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that everybody may enter, which pytest's own is not, with a second place that everybody may write to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for place, mode in (("memory", 0o755), ("second", 0o777)):
            (folder / place).mkdir()
            (folder / place).chmod(mode)
        yield folder


def test_without_rights_the_second_place_is_written_to(open_folder: Path) -> None:
    """And what is returned says so, and why."""
    files = DayFiles(open_folder / "memory", open_folder / "second")
    with without_rights(open_folder / "memory"):
        written = files.append("ann", DAY, RUN, "one", EVENING)
    assert isinstance(written, Written)
    assert written.path == (open_folder / "second/ann/2026-01-05.md").resolve()
    assert written.instead_of is not None
    assert written.instead_of.path == (open_folder / "memory/ann/2026-01-05.md").resolve()
    assert written.instead_of.errno == errno.EACCES
    assert everything(open_folder) == {"second/ann/2026-01-05.md"}


def test_without_rights_to_the_users_folder_too(open_folder: Path) -> None:
    """There the lock can be had."""
    files = DayFiles(open_folder / "memory", open_folder / "second")
    files.append("ann", DAY, RUN, "one", EVENING)
    for lock in (open_folder / "memory").glob("*.lock"):
        lock.chmod(0o666)
    with without_rights(open_folder / "memory" / "ann"):
        written = files.append("ann", DAY, NEXT, "two", EVENING)
        assert files.append("ann", DAY, RUN, "one", EVENING) == Already(
            (open_folder / "memory/ann/2026-01-05.md").resolve(), frozenset({RUN})
        )
    assert isinstance(written, Written)
    assert written.path.parts[-3] == "second"
    assert everything(open_folder) == {"memory/ann/2026-01-05.md", "second/ann/2026-01-05.md"}


@pytest.mark.parametrize("in_the_way", ["memory", "memory/ann", "memory/ann/2026-01-05.md/"])
def test_something_else_in_its_place_is_no_place(files: DayFiles, tmp_path: Path, in_the_way: str) -> None:
    """A file for a folder, or a folder for the file: it is left as it is."""
    path = tmp_path / in_the_way
    path.parent.mkdir(parents=True, exist_ok=True)
    if in_the_way.endswith("/"):
        path.mkdir()
    else:
        path.write_text("in the way")
    written = files.append("ann", DAY, RUN, "one", EVENING)
    assert isinstance(written, Written)
    assert written.path == tmp_path / "second/ann/2026-01-05.md"
    assert written.instead_of is not None
    assert written.instead_of.errno in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR)
    assert path.is_dir() == in_the_way.endswith("/")
    assert everything(tmp_path) - {in_the_way} == {"second/ann/2026-01-05.md"}


def test_where_no_place_can_be_written_to_the_error_says_which_and_why(files: DayFiles, tmp_path: Path) -> None:
    for place in ("memory", "second"):
        (tmp_path / place).write_text("in the way")
    with pytest.raises(SummaryNotWritten) as caught:
        files.append("ann", DAY, RUN, "one", EVENING)
    assert [one.path.relative_to(tmp_path).parts[0] for one in caught.value.unusable] == ["memory", "second"]
    assert {one.errno for one in caught.value.unusable} == {errno.EEXIST}
    assert str(tmp_path / "second/ann/2026-01-05.md: File exists") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert everything(tmp_path) == {"memory", "second"}


def test_without_a_second_place_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("in the way")
    with pytest.raises(SummaryNotWritten) as caught:
        DayFiles(tmp_path / "memory").append("ann", DAY, RUN, "one", EVENING)
    assert len(caught.value.unusable) == 1


@pytest.mark.parametrize("second", ["memory", "./x/../memory", "link"])
def test_the_same_place_twice_is_one(tmp_path: Path, second: str) -> None:
    """It does not wait for itself."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "memory")
    files = DayFiles(tmp_path / "memory", tmp_path / second)
    files.append("ann", DAY, RUN, "one", EVENING)
    assert (files.read("ann", DAY) or "").count("one") == 1


def limited_to(size: int, folder: Path, run: uuid.UUID, text: str) -> str:
    """What a process says that appends to ann's day, and may write no file that is longer than `size` bytes."""
    script = f"""
import resource, signal, uuid
from datetime import date, datetime, UTC
from pathlib import Path
from schemas.errors import SummaryNotWritten
from tables.summaries.day_files import DayFiles
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
folder = Path({str(folder)!r})
files = DayFiles(folder / "memory", folder / "second")
try:
    print(files.append("ann", date(2026, 1, 5), uuid.UUID({str(run)!r}), {text!r}, datetime.now(UTC)))
except SummaryNotWritten as exc:
    print("SummaryNotWritten", *(one.errno for one in exc.unusable))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_on_a_full_disk_the_old_file_stays_and_the_second_place_is_taken(files: DayFiles, tmp_path: Path) -> None:
    """The disk is full in the midst of the new file."""
    files.append("ann", DAY, RUN, "old " * 5_000, EVENING)
    before = (tmp_path / "memory" / "ann" / "2026-01-05.md").read_bytes()
    said = limited_to(20_100, tmp_path, NEXT, "new " * 100)
    assert said.startswith("Written(")
    assert "second" in said
    assert f"errno={errno.EFBIG}" in said
    assert (tmp_path / "memory" / "ann" / "2026-01-05.md").read_bytes() == before
    assert everything(tmp_path) == {"memory/ann/2026-01-05.md", "second/ann/2026-01-05.md"}
    assert files.runs("ann", DAY) == (RUN, NEXT)


def test_where_both_disks_are_full_nothing_stays(tmp_path: Path) -> None:
    assert limited_to(1_000, tmp_path, RUN, "new " * 1_000) == f"SummaryNotWritten {errno.EFBIG} {errno.EFBIG}"
    assert everything(tmp_path) == set()
    assert not (tmp_path / "memory" / "ann").exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("step", ["fsync", "fchmod", "replace", "open", "mkdir"])
def test_whatever_step_fails_the_old_file_stays(
    files: DayFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    files.append("ann", DAY, RUN, "one", EVENING)
    before = files.read("ann", DAY)
    real = getattr(os, step)
    failing = iter([OSError(code, os.strerror(code))])

    def once(*args: object, **kwargs: object) -> object:
        if error := next(failing, None):
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(os, step, once)
    written = files.append("ann", DAY, NEXT, "two", EVENING)
    monkeypatch.undo()
    assert isinstance(written, Written)
    if written.instead_of is not None:
        assert written.instead_of.errno == code
        assert everything(tmp_path) == {"memory/ann/2026-01-05.md", "second/ann/2026-01-05.md"}
        assert (tmp_path / "memory/ann/2026-01-05.md").read_text(encoding="utf-8") == before
    assert files.runs("ann", DAY) == (RUN, NEXT)
    assert next(failing, None) is None


def test_a_run_in_the_second_place_is_not_written_to_the_first_once_it_is_well(
    files: DayFiles, tmp_path: Path
) -> None:
    """Others are; a reader sees both."""
    (tmp_path / "memory").write_text("in the way")
    files.append("ann", DAY, RUN, "one", EVENING)
    (tmp_path / "memory").unlink()
    stands = Already(tmp_path / "second/ann/2026-01-05.md", frozenset({RUN}))
    assert files.append("ann", DAY, RUN, "one", EVENING) == stands
    assert isinstance(files.append("ann", DAY, NEXT, "two", EVENING), Written)
    assert files.append("ann", DAY, RUN, "one", EVENING) == stands
    text = files.read("ann", DAY) or ""
    assert text.count("# 2026-01-05") == 1
    assert text.index("two") < text.index("\n---\n") < text.index("one")
    assert set(files.runs("ann", DAY)) == {RUN, NEXT}


# Looking for days


def test_days_are_listed_in_order_from_both_places(files: DayFiles, tmp_path: Path) -> None:
    days = [date(2026, 1, day) for day in (7, 5, 6)]
    for day in days[:2]:
        files.append("ann", day, RUN, "one", EVENING)
    (tmp_path / "memory").rename(tmp_path / "away")
    (tmp_path / "memory").write_text("in the way")
    for day in days[1:]:
        files.append("ann", day, NEXT, "two", EVENING)
    (tmp_path / "memory").unlink()
    (tmp_path / "away").rename(tmp_path / "memory")
    for name in ("notes.md", "2026-13-01.md", "2026-01-08.txt", ".2026-01-09.md.tmp"):
        (tmp_path / "memory" / "ann" / name).write_text("another's")
    assert files.dates("ann") == sorted(days)
    assert files.dates("ann", date(2026, 1, 6)) == [date(2026, 1, 6), date(2026, 1, 7)]
    assert files.dates("ann", date(2026, 1, 6), date(2026, 1, 6)) == [date(2026, 1, 6)]
    assert files.dates("bo") == []


@pytest.mark.parametrize("root", ["nothing", "a folder", "a file"])
def test_of_a_day_without_a_summary_there_is_nothing(files: DayFiles, tmp_path: Path, root: str) -> None:
    """And reading makes nothing."""
    if root == "a folder":
        (tmp_path / "memory" / "ann").mkdir(parents=True)
    elif root == "a file":
        (tmp_path / "memory").write_text("in the way")
    before = sorted(tmp_path.rglob("*"))
    assert (files.read("ann", DAY), files.runs("ann", DAY), files.dates("ann")) == (None, (), [])
    assert files.forget("ann") == (root == "a folder")
    if root != "a folder":
        assert sorted(tmp_path.rglob("*")) == before


def test_what_cannot_be_read_is_an_error_and_not_nothing(files: DayFiles, tmp_path: Path) -> None:
    (tmp_path / "memory" / "ann" / "2026-01-05.md").mkdir(parents=True)
    for look in (files.read, files.runs):
        with pytest.raises(SummaryFilesError, match=r"2026-01-05\.md: Is a directory") as caught:
            look("ann", DAY)
        assert caught.value.unusable[0].errno == errno.EISDIR


# Forgetting


def test_forgetting_removes_a_user_from_both_places(files: DayFiles, tmp_path: Path) -> None:
    """And nobody else."""
    for user in ("ann", "Ann", "bo"):
        files.append(user, DAY, RUN, "one", EVENING)
        DayFiles(tmp_path / "second").append(user, DAY, NEXT, "two", EVENING)
    (tmp_path / "memory" / "ann" / "their own file.txt").write_text("x")
    assert files.forget("ann")
    assert not files.forget("ann")
    assert (files.read("ann", DAY), files.dates("ann")) == (None, [])
    assert not (tmp_path / "memory" / "ann").exists()
    assert files.runs("Ann", DAY) == files.runs("bo", DAY) == (RUN, NEXT)


def test_after_forgetting_a_run_may_be_written_again(files: DayFiles) -> None:
    """That replays respect a forgotten user is for others to see to."""
    files.append("ann", DAY, RUN, "one", EVENING)
    files.forget("ann")
    assert isinstance(files.append("ann", DAY, RUN, "one", EVENING), Written)


def test_what_cannot_be_removed_is_an_error_and_the_rest_is_gone(open_folder: Path) -> None:
    """And is removed when it can be."""
    files = DayFiles(open_folder / "memory", open_folder / "second")
    files.append("ann", DAY, RUN, "one", EVENING)
    other = DayFiles(open_folder / "second")
    (open_folder / "memory").chmod(0o555)  # else the folder's owner may put it aside
    with without_rights(open_folder / "memory" / "ann"):
        other.append("ann", DAY, NEXT, "two", EVENING)
        with pytest.raises(SummaryFilesError, match="summaries could not be removed") as caught:
            files.forget("ann")
        assert [one.errno for one in files.sweep()] == [errno.EACCES]
    assert [one.errno for one in caught.value.unusable] == [errno.EACCES]
    assert everything(open_folder) == {"memory/ann/2026-01-05.md"}
    (open_folder / "memory").chmod(0o755)
    assert files.sweep() == []
    assert everything(open_folder) == set()


def test_what_cannot_be_removed_is_put_aside_and_removed_later_after_a_restart_too(open_folder: Path) -> None:
    """Nobody finds it any more. What is written meanwhile is no part of what was forgotten."""
    files = DayFiles(open_folder / "memory", open_folder / "second")
    files.append("ann", DAY, RUN, "one", EVENING)
    for place in (open_folder / "memory", *(open_folder / "memory").glob("*.lock")):
        place.chmod(0o777)
    (open_folder / "memory" / "ann").chmod(0o555)  # it may be put aside, and what is in it not removed
    with without_rights(open_folder / "second"):
        with pytest.raises(SummaryFilesError, match="summaries could not be removed"):
            files.forget("ann")
        assert (files.dates("ann"), files.runs("ann", DAY)) == ([], ())
        assert isinstance(files.append("ann", DAY, RUN, "after", EVENING), Written)
    (aside,) = (open_folder / "memory").glob(".forgotten-*")
    aside.chmod(0o755)
    assert DayFiles(open_folder / "memory").sweep() == []
    assert not list((open_folder / "memory").glob(".forgotten-*"))
    assert "after" in (files.read("ann", DAY) or "")


# Crashes, and others at the same time

CRASHING = """
import os, sys, uuid
from datetime import date, datetime, UTC
from pathlib import Path
import tables.summaries.day_files
import tables.summaries.day_part
from tables.summaries.day_files import DayFiles
from tables.summaries.day_part import DayMerge

folder, action = Path(sys.argv[1]), sys.argv[2]
DAY, RUNS = date(2026, 1, 5), [uuid.UUID(int=place) for place in range(1, 4)]
FILES, PART = tables.summaries.day_files.__file__, tables.summaries.day_part.__file__
OURS = {FILES, PART, os.path.join(os.path.dirname(sys.argv[3]), "shutil.py")}


def merging():
    return DayMerge(lambda texts: f"{len(texts)} summaries " + "day " * 5_000, day_over=True)


def do(files):
    if action == "append":
        files.append("ann", DAY, RUNS[1], "two " * 5_000, datetime.now(UTC))
    elif action == "merge":
        files.append("ann", DAY, RUNS[2], "two " * 5_000, datetime.now(UTC), merge=merging())
    elif action == "begin":
        files.append("bo", DAY, RUNS[0], "one " * 5_000, datetime.now(UTC))
    else:
        files.forget("ann")


def dies_at(fatal):
    '''Whether a process that does it dies, as if it was killed, before the line with this number.'''
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    seen = 0

    def trace(frame, event, arg):
        nonlocal seen
        if frame.f_code.co_filename not in OURS:
            return None
        if event == "line":
            seen += 1
            if seen == fatal:
                os._exit(9)
        return trace

    sys.settrace(trace)
    do(DayFiles(folder / "memory", folder / "second"))
    os._exit(0)


def check(files, before):
    '''Old or new, and nothing between.'''
    for user, runs in before.items():
        now = files.read(user, DAY)
        added = {"append": ("ann", RUNS[1]), "merge": ("ann", RUNS[2]), "begin": ("bo", RUNS[0])}.get(action)
        if action == "forget" and user == "ann":
            for day in files.dates("ann"):
                assert files.runs("ann", day) == (RUNS[0],), day
        elif added and added[0] == user:
            assert files.runs(user, DAY) in (runs, (*runs, added[1])), files.runs(user, DAY)
            if added[1] in files.runs(user, DAY):
                assert now.endswith(("two " if user == "ann" else "one ") * 4_999 + now[-4:-1] + chr(10)), now[-50:]
            if action == "merge" and user == "ann":
                merged = 2 + (added[1] in files.runs(user, DAY))
                assert now.count("<!-- siltstone: day -->") == now.count("<!-- /siltstone: day -->") == 1
                assert f"{merged} summaries " + "day " * 4_999 in now, now[:200]
        else:
            assert files.runs(user, DAY) == runs


lines = 0
while True:
    lines += 1
    files = DayFiles(folder / "memory", folder / "second")
    files.forget("ann")
    files.forget("bo")
    files.append("ann", DAY, RUNS[0], "old " * 100, datetime.now(UTC))
    files.append("ann", date(2026, 1, 6), RUNS[0], "old " * 100, datetime.now(UTC))
    before = {"ann": (RUNS[0],), "bo": ()}
    if action == "merge":
        files.append("ann", DAY, RUNS[1], "second " * 100, datetime.now(UTC), merge=merging())
        before["ann"] = (RUNS[0], RUNS[1])
    died = dies_at(lines)
    check(files, before)
    do(files)
    first, both = (RUNS[0],), (RUNS[0], RUNS[1])
    done = {"append": (both, ()), "merge": (tuple(RUNS), ()), "begin": (first, first), "forget": ((), ())}
    assert (files.runs("ann", DAY), files.runs("bo", DAY)) == done[action]
    left = [path for path in folder.rglob("*") if path.name.endswith(".tmp") or ".forgotten-" in path.name]
    assert not left, left
    if not died:
        break
print(lines)
"""


@pytest.mark.slow
@pytest.mark.parametrize("action", ["append", "merge", "begin", "forget"])
def test_a_crash_before_any_line_leaves_the_old_or_the_new_and_is_repeatable(tmp_path: Path, action: str) -> None:
    """A file that is there, one that begins, and forgetting; done again, all is as if nothing had been."""
    script = tmp_path / "crashing.py"
    script.write_text(CRASHING, encoding="utf-8")
    command = [sys.executable, str(script), str(tmp_path / "data"), action, os.__file__]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


APPENDING = """
import sys, uuid
from datetime import date, datetime, UTC
from pathlib import Path
from tables.summaries.day_files import DayFiles

files = DayFiles(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for place in range(int(sys.argv[2]), int(sys.argv[3])):
    files.append("ann", date(2026, 1, 5), uuid.UUID(int=place), f"text {place} " * 200, datetime.now(UTC))
"""


@pytest.mark.slow
def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    """Half of their runs are the same ones. A reader meanwhile sees whole additions alone."""
    files = DayFiles(tmp_path)
    appending = [
        subprocess.Popen(
            [sys.executable, "-c", APPENDING, str(tmp_path), str(first), str(first + 40)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for first in (1, 21, 41)
    ]
    for one in appending:
        assert one.stdout is not None
        assert one.stdout.readline() == b"ready\n"
    for one in appending:
        assert one.stdin is not None
        one.stdin.write(b"\n")
        one.stdin.flush()
    seen = 0
    while any(one.poll() is None for one in appending):
        text = files.read("ann", DAY)
        if text is not None:
            assert len(re.findall(r"^<!-- run: ", text, re.MULTILINE)) == text.count("\n---\n") + 1
            assert text.endswith(" \n") or re.search(r"text \d+\n\Z", text)
            seen += 1
    for one in appending:
        one.communicate()
        assert one.returncode == 0
    assert seen
    text = files.read("ann", DAY) or ""
    assert sorted(files.runs("ann", DAY)) == [uuid.UUID(int=place) for place in range(1, 81)]
    for place in range(1, 81):
        assert len(re.findall(rf"text {place}\b", text)) == 200


def test_threads_that_write_the_same_run_write_it_once(files: DayFiles) -> None:
    """The lock is between threads as well."""
    outcomes: list[object] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(type(files.append("ann", DAY, RUN, "one", EVENING))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=str) == [*[Already] * 7, Written]


def test_a_draft_of_a_killed_process_is_no_file_and_goes_with_the_next_run(files: DayFiles, tmp_path: Path) -> None:
    files.append("ann", DAY, RUN, "one", EVENING)
    draft = tmp_path / "memory" / "ann" / ".2026-01-04.md.tmp"
    draft.write_text("half")
    assert files.dates("ann") == [DAY]
    files.append("ann", DAY, NEXT, "two", EVENING)
    assert not draft.exists()


def test_an_untold_disk_is_no_failure(files: DayFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems cannot make a folder's names last: the summary stands in its file all the same."""
    real = os.fsync

    def refuses_folders(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112 - what the handle is of
            raise OSError(errno.EINVAL, "no folders")
        real(handle)

    monkeypatch.setattr(os, "fsync", refuses_folders)
    assert files.append("ann", DAY, RUN, "one", EVENING) == Written(files._paths("ann", DAY)[0], None)


def test_a_runs_part_of_a_file_is_what_it_wrote(files: DayFiles) -> None:
    """Lines that look like the mark between two runs are its own."""
    for run, text in ((RUN, "## one\n\n---\n\nstill one"), (NEXT, "two")):
        files.append("ann", DAY, run, text, EVENING)
    markdown = files.read("ann", DAY) or ""
    assert written_by(RUN, markdown) == "*2026-01-05 18:30:00+08:00*\n\n## one\n\n---\n\nstill one"
    assert written_by(NEXT, markdown) == "*2026-01-05 18:30:00+08:00*\n\ntwo"
    assert written_by(THIRD, markdown) is None


def test_who_hears_late_of_a_forgetting_removes_what_was_begun_before_it(files: DayFiles, tmp_path: Path) -> None:
    """In both places, though somebody has copied the files since; a day that was begun later stays."""
    second = DayFiles(tmp_path / "second")
    for place in (files, second):
        place.append("ann", DAY, RUN, "one", EVENING)
    later = DAY + timedelta(days=1)
    files.append("ann", later, RUN, "two", EVENING + timedelta(days=1))
    moment = round(EVENING.timestamp() * 1000)
    assert not files.forget("ann", moment - 1)
    assert files.forget("ann", moment)
    assert (files.dates("ann"), "two" in (files.read("ann", later) or "")) == ([later], True)
    assert not files.forget("ann", moment)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"one" in path.read_bytes()]


def test_a_day_file_without_a_time_is_as_old_as_the_file(files: DayFiles, tmp_path: Path) -> None:
    files.append("ann", DAY, RUN, "one", EVENING)
    (path,) = tmp_path.rglob(f"{DAY}.md")
    path.write_text("somebody's own words")
    moment = round(path.stat().st_mtime * 1000)
    assert not files.forget("ann", moment - 1000)
    assert files.forget("ann", moment + 1000)
    assert files.dates("ann") == []
