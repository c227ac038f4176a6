"""What an interrupted replay holds of users goes when one of them is forgotten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streams.replay.interrupted import drop_interrupted
from streams.replay.progress import ReplayProgress, WindowRow
from tests.support.making import START


def begun(folder: Path, at: int) -> ReplayProgress:
    """A replay that has read somebody's window."""
    folder.mkdir(parents=True)
    progress = ReplayProgress(folder / "0.sqlite")
    progress.save([WindowRow("sessions", b"key", b"unmistakable")], (), {})
    (folder / "plan.json").write_text("{}")
    os.utime(folder / "plan.json", (at / 1000, at / 1000))
    return progress


@pytest.mark.parametrize("name", ["replay/abc", "replay-check"])
def test_one_that_was_begun_before_is_removed_once_nobody_is_at_work_in_it(tmp_path: Path, name: str) -> None:
    """A later one is not: it holds what Kafka holds."""
    before, later = begun(tmp_path / name, START), begun(tmp_path / "replay/later", START + 10_000)
    assert drop_interrupted(tmp_path, START + 5000) == []
    before.close()
    later.close()
    assert drop_interrupted(tmp_path, START + 5000) == [tmp_path / name]
    assert [path.parent.name for path in tmp_path.rglob("*.sqlite")] == ["later"]


def test_one_that_is_only_being_begun_is_left_alone(tmp_path: Path) -> None:
    """It has a plan, and no words yet."""
    begun(tmp_path / "replay/abc", START).close()
    (tmp_path / "replay/abc/0.sqlite").unlink()
    assert drop_interrupted(tmp_path, START + 5000) == []


def test_without_any_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert drop_interrupted(tmp_path / "nowhere", START) == []
