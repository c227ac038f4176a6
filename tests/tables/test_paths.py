"""Files that take another one's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tables import paths
from tables.paths import write_whole


def test_two_writers_at_once_both_succeed_and_the_last_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers that start together note the same things of their data directory."""
    path, sync, others = tmp_path / "noted", paths.synced, [b"other"]

    def meanwhile(written: Path) -> None:
        if others:
            write_whole(path, others.pop())
        sync(written)

    monkeypatch.setattr(paths, "synced", meanwhile)
    write_whole(path, b"mine")
    assert path.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "noted"
    write_whole(path, b"before")

    def full(written: Path) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(paths, "synced", full)
    with pytest.raises(OSError, match="no space"):
        write_whole(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
