"""Drafts of what is restored: whoever made one holds it, and what a process left that was killed goes."""

from __future__ import annotations

from pathlib import Path

from tables.checkpoints.drafts import Draft, drop_left
from tests.tables.checkpoints.made import written


def test_a_draft_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    draft = Draft(tmp_path, 3)
    written(draft.files, catalog=b"words")
    draft.drop()
    assert list(tmp_path.iterdir()) == []


def test_what_is_held_stays_and_what_was_left_goes(tmp_path: Path) -> None:
    """Of one partition or of all; earlier versions left it without a lock, and beside a name of its own."""
    mine, other = Draft(tmp_path, 3), Draft(tmp_path, 4)
    for left in ("3-77-0", "4-77-0.restoring", "windows-3-77-0"):
        written(tmp_path / left, catalog=b"words")
    written(tmp_path / "3.former", catalog=b"a disk")
    drop_left(tmp_path, "3")
    assert not (tmp_path / "3-77-0").exists()
    assert (tmp_path / "4-77-0.restoring").exists()
    drop_left(tmp_path)
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"3", "4", "3.former"}
    mine.drop()
    other.drop()
    assert [path.name for path in tmp_path.iterdir()] == ["3.former"]


def test_where_nothing_was_restored_nothing_is_left(tmp_path: Path) -> None:
    drop_left(tmp_path / "restoring")
    assert list(tmp_path.iterdir()) == []
