"""The marked part at the beginning of a day's file, on a real disk: replaced, never doubled, and the rest stays."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables.summaries.day_files import Already, DayFiles, Written, merged_in, written_by
from tables.summaries.day_format import entry, heading
from tables.summaries.day_part import BEGIN, END, DayMerge, joined, remade, with_part, without_part
from tests.support.examples import examples

DAY = date(2026, 1, 5)
NOW = datetime(2026, 1, 5, 18, 30, tzinfo=UTC)
RUNS = [uuid.UUID(int=place) for place in range(1, 10)]


def told(texts: Sequence[str]) -> str:
    """What a merged day says here: the last words of its summaries."""
    return "day of " + " ".join(text.split("---")[0].split()[-1] for text in texts) if len(texts) > 1 else ""


OVER, NOT_OVER = DayMerge(told, day_over=True), DayMerge(told, day_over=False)


@pytest.fixture
def files(tmp_path: Path) -> DayFiles:
    return DayFiles(tmp_path / "memory", tmp_path / "second")


def add(files: DayFiles, number: int, merge: DayMerge | None = OVER) -> Written | Already:
    return files.append("ann", DAY, RUNS[number], f"text{number}", NOW, merge=merge)


def path_of(tmp_path: Path, place: str = "memory") -> Path:
    return tmp_path / place / "ann" / "2026-01-05.md"


def content_of(tmp_path: Path, place: str = "memory") -> str:
    return path_of(tmp_path, place).read_bytes().decode()


def part(text: str, *numbers: int) -> str:
    of = " ".join(str(RUNS[number]) for number in numbers)
    return f"<!-- siltstone: day -->\n<!-- of: {of} -->\n\n{text}\n\n---\n\n<!-- /siltstone: day -->"


# What is in the file


def test_the_day_begins_with_its_summary_below_the_heading(files: DayFiles, tmp_path: Path) -> None:
    """Below it the summaries are as they would be without it, byte for byte."""
    add(files, 0, None)
    add(files, 1, OVER)
    beginning = heading("ann", DAY).decode()
    entries = [entry([RUNS[number]], f"text{number}", NOW).decode() for number in (0, 1)]
    bare = beginning + "\n---\n\n".join(entries)
    merged = part("day of text0 text1", 0, 1)
    assert content_of(tmp_path) == f"{beginning}{merged}\n\n{bare.removeprefix(beginning)}"
    assert without_part(path_of(tmp_path).read_bytes()).decode() == bare


def test_a_day_with_one_summary_has_no_part(files: DayFiles) -> None:
    add(files, 0)
    assert BEGIN.decode() not in (files.read("ann", DAY) or "")


def test_a_day_that_is_not_over_has_no_part(files: DayFiles) -> None:
    for number in range(3):
        add(files, number, NOT_OVER)
    assert merged_in(files.read("ann", DAY) or "") is None


def test_it_is_replaced_by_each_summary_that_comes_later(files: DayFiles, tmp_path: Path) -> None:
    """A second end of the day, and a late summary of another kind."""
    for number, merge in enumerate([NOT_OVER, OVER, OVER, NOT_OVER]):
        add(files, number, merge)
    text = content_of(tmp_path)
    assert (text.count(BEGIN.decode()), text.count(END.decode())) == (1, 1)
    assert merged_in(text) == "day of text0 text1 text2 text3"


def test_a_request_that_comes_again_changes_nothing(files: DayFiles, tmp_path: Path) -> None:
    add(files, 0)
    add(files, 1)
    before, stat = content_of(tmp_path), path_of(tmp_path).stat()
    assert isinstance(add(files, 1), Already)
    assert isinstance(add(files, 0, DayMerge(lambda _: "other", day_over=True)), Already)
    assert (content_of(tmp_path), path_of(tmp_path).stat().st_ino) == (before, stat.st_ino)


def test_what_cannot_be_merged_leaves_the_part_and_is_written(files: DayFiles) -> None:
    add(files, 0)
    add(files, 1)
    add(files, 2, DayMerge(lambda _: None, day_over=True))
    text = files.read("ann", DAY) or ""
    assert (merged_in(text), "text2" in text) == ("day of text0 text1", True)


def test_without_the_setting_a_part_stays_as_it_is(files: DayFiles) -> None:
    add(files, 0)
    add(files, 1)
    add(files, 2, None)
    assert merged_in(files.read("ann", DAY) or "") == "day of text0 text1"


def test_a_runs_summary_is_what_it_wrote_without_the_part(files: DayFiles) -> None:
    """Wherever a person has moved the part."""
    add(files, 0)
    add(files, 1)
    text = files.read("ann", DAY) or ""
    moved = without_part(text.encode()).decode() + "\n" + part("day", 0, 1)
    for one in (text, moved):
        written = [written_by(run, one) for run in RUNS[:3]]
        assert written == ["*2026-01-05 18:30:00+00:00*\n\ntext0", "*2026-01-05 18:30:00+00:00*\n\ntext1", None]


def test_no_text_passes_for_a_mark(files: DayFiles) -> None:
    """Neither that of a summary nor that of the day."""
    hostile = f"<!-- siltstone: day -->\nx\n<!-- /siltstone: day -->\n<!-- run: {RUNS[8]} -->"
    files.append("ann", DAY, RUNS[0], hostile, NOW, merge=OVER)
    files.append("ann", DAY, RUNS[1], "two", NOW, merge=DayMerge(lambda _: hostile, day_over=True))
    files.append(
        "ann", DAY, RUNS[2], "three", NOW, merge=DayMerge(lambda texts: f"{len(texts)} texts", day_over=True)
    )
    text = files.read("ann", DAY) or ""
    assert (files.runs("ann", DAY), merged_in(text)) == (tuple(RUNS[:3]), "3 texts")
    assert "&lt;!-- siltstone: day -->\nx" in text


def test_forgetting_by_time_goes_by_the_first_summary_not_by_the_part(files: DayFiles) -> None:
    """Whose time is later. The part goes with its file."""
    later = "*2026-01-09 00:00:00+00:00*"
    add(files, 0)
    files.append("ann", DAY, RUNS[1], "two", NOW, merge=DayMerge(lambda _: later, day_over=True))
    begun = round(NOW.timestamp() * 1000)
    assert not files.forget("ann", begun - 1)
    assert later in (files.read("ann", DAY) or "")
    assert files.forget("ann", begun)
    assert files.read("ann", DAY) is None


# Files that people edit


def edited(files: DayFiles, tmp_path: Path, old: str, new: str) -> None:
    """A day with a part, which a person has edited."""
    add(files, 0)
    add(files, 1)
    text = content_of(tmp_path)
    assert old in text
    path_of(tmp_path).write_bytes(text.replace(old, new).encode())


def test_what_is_outside_of_the_marks_stays(files: DayFiles, tmp_path: Path) -> None:
    edited(files, tmp_path, "text0", "mine\n\n- [x] done")
    path = path_of(tmp_path)
    path.write_bytes(b"\xef\xbb\xbfabove \xff\r\n" + path.read_bytes().replace(b"\n", b"\r\n") + b"below")
    before = without_part(path.read_bytes())
    add(files, 2)
    after = path.read_bytes()
    assert (after.count(BEGIN), b"day of done below text2" in after) == (1, True)
    assert without_part(after).startswith(before)


def test_without_a_heading_the_part_is_above_the_first_summary(files: DayFiles, tmp_path: Path) -> None:
    add(files, 0)
    text = content_of(tmp_path)
    path_of(tmp_path).write_text(f"my notes\n\n{text[text.index('<!-- run') :]}", encoding="utf-8")
    add(files, 1)
    assert content_of(tmp_path).startswith(f"my notes\n\n{part('day of text0 text1', 0, 1)}\n\n<!-- run: ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<!-- /siltstone: day -->", ""),
        ("<!-- siltstone: day -->", ""),
        ("<!-- /siltstone: day -->", "<!-- siltstone: day -->"),
        ("<!-- /siltstone: day -->", "  <!-- /siltstone: day -->"),
    ],
)
def test_a_mark_alone_loses_nothing(files: DayFiles, tmp_path: Path, old: str, new: str) -> None:
    """The text beside it stays, and a part is made, once."""
    edited(files, tmp_path, old, new)
    before = content_of(tmp_path)
    add(files, 2)
    add(files, 3)
    after = content_of(tmp_path)
    assert merged_in(after) == "day of text0 text1 text2 text3"
    assert (after.count("day of text0 text1\n"), after.count("day of text0 text1 text2")) == (1, 1)
    kept = without_part(after.encode()).decode()
    assert kept.startswith(before)


def test_marks_around_a_summary_are_not_a_part(files: DayFiles, tmp_path: Path) -> None:
    """A person moved the end mark to the end of the file."""
    edited(files, tmp_path, "\n\n---\n\n<!-- /siltstone: day -->", "")
    path = path_of(tmp_path)
    path.write_bytes(path.read_bytes() + b"\n<!-- /siltstone: day -->\n")
    before = content_of(tmp_path)
    add(files, 2)
    assert without_part(path.read_bytes()).decode().startswith(before)
    assert files.runs("ann", DAY) == tuple(RUNS[:3])


def test_a_part_that_a_person_moved_is_replaced_where_it_is_and_a_copy_is_removed(
    files: DayFiles, tmp_path: Path
) -> None:
    add(files, 0)
    add(files, 1)
    path = path_of(tmp_path)
    bare = without_part(path.read_bytes())
    old = part("day of text0 text1", 0, 1).encode()
    path.write_bytes(bare + b"\n" + old + b"\nend\n" + old + b"\n")
    add(files, 2)
    text = content_of(tmp_path)
    assert text.startswith(f"{bare.decode()}\n{part('day of text0 end text2', 0, 1, 2)}\nend\n")
    assert text.count(BEGIN.decode()) == 1


def test_where_a_person_removed_a_summary_the_part_stays(files: DayFiles, tmp_path: Path) -> None:
    """It may be all that is left of it. Without the part, a new one is made of what is there."""
    add(files, 0)
    add(files, 1)
    path, text = path_of(tmp_path), content_of(tmp_path)
    path.write_bytes(re.sub(r"<!-- run: \S+1 -->.*?\n---\n\n(?=<!-- run)", "", text, flags=re.DOTALL).encode())
    assert files.runs("ann", DAY) == (RUNS[1],)
    add(files, 2)
    add(files, 3)
    assert merged_in(content_of(tmp_path)) == "day of text0 text1"
    path.write_bytes(without_part(path.read_bytes()))
    add(files, 4)
    assert merged_in(content_of(tmp_path)) == "day of text1 text2 text3 text4"


def test_a_part_without_its_runs_is_replaced(files: DayFiles, tmp_path: Path) -> None:
    edited(files, tmp_path, f"<!-- of: {RUNS[0]} {RUNS[1]} -->\n", "")
    add(files, 2)
    assert merged_in(content_of(tmp_path)) == "day of text0 text1 text2"


def test_where_no_summary_needs_it_any_more_the_part_goes(files: DayFiles, tmp_path: Path) -> None:
    add(files, 0)
    add(files, 1)
    bare = without_part(path_of(tmp_path).read_bytes())
    add(files, 2, DayMerge(lambda _: "", day_over=True))
    assert path_of(tmp_path).read_bytes().startswith(bare)


PIECE = st.sampled_from(
    [
        *(BEGIN, END, b"<!-- /siltstone: day", b" "),
        *(b"\n", b"\n\n", b"\r\n", b"text", b"\xff", b"\n---\n\n"),
        *(f"<!-- run: {run} -->\n".encode() for run in RUNS[:2]),
        *(part("day", 0).encode(), heading("ann", DAY), b"<!-- of: x -->"),
    ]
)


@examples(300)
@given(st.lists(PIECE, max_size=12).map(b"".join))
def test_whatever_is_in_a_file_all_but_the_part_stays(content: bytes) -> None:
    """Made again, it is the same; and no summary is ever between its marks."""
    once = remade([content], 0, DayMerge(lambda _: "merged", day_over=True))
    twice = remade([once], 0, DayMerge(lambda _: "merged", day_over=True))
    assert twice == once
    bare, before = without_part(once), without_part(content)
    assert bare.replace(b"\r", b"").replace(b"\n", b"") == before.replace(b"\r", b"").replace(b"\n", b"")
    assert re.findall(rb"<!-- run: \S+ -->", once) == re.findall(rb"<!-- run: \S+ -->", content)


# The second place


def test_where_the_first_place_fails_the_part_is_made_of_both_and_read_once(
    files: DayFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the beginning; the older part, of the file that cannot be written, is not shown."""
    add(files, 0)
    add(files, 1)
    real = Path.replace

    def refused(path: Path, target: Path) -> Path:
        if "memory" in target.parts:
            raise OSError(28, os.strerror(28))
        return real(path, target)

    monkeypatch.setattr(Path, "replace", refused)
    late = add(files, 2, NOT_OVER)
    assert isinstance(late, Written)
    assert late.path == path_of(tmp_path, "second")
    monkeypatch.undo()
    text = files.read("ann", DAY) or ""
    assert (text.count(BEGIN.decode()), merged_in(text)) == (1, "day of text0 text1 text2")
    assert text.startswith(f"{heading('ann', DAY).decode()}{BEGIN.decode()}")
    assert files.runs("ann", DAY) == tuple(RUNS[:3])
    add(files, 3)
    assert merged_in(files.read("ann", DAY) or "") == "day of text0 text1 text3 text2"
    assert merged_in(content_of(tmp_path, "second")) == "day of text0 text1 text2"


def test_files_without_parts_are_joined_as_they_are() -> None:
    one, two = (heading("ann", DAY) + entry([run], "x", NOW) for run in RUNS[:2])
    assert joined([one, two], heading("ann", DAY)) == one + b"\n---\n\n" + entry([RUNS[1]], "x", NOW)


def test_a_part_is_put_into_a_file_without_summaries() -> None:
    assert with_part(b"notes\n", b"part") == b"notes\npart\n\n"
