"""Removes interrupted replays from a data directory when a user is forgotten, because they contain users' texts."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
from pathlib import Path

from schemas.errors import SiltstoneError
from streams.replay.progress import ReplayProgress

log = logging.getLogger(__name__)


def drop_interrupted(data_dir: Path, until: int) -> list[Path]:
    """Remove the replays that began at `until` (epoch ms) or earlier and are not running. Return the removed folders.

    The operator can start a removed replay again with the same command. Folders that the operator chose with `--into`
    are not searched.
    """
    return [folder for folder in _folders(data_dir) if _begun(folder) <= until and _dropped(folder)]


def _folders(data_dir: Path) -> list[Path]:
    """Return the folders of replays without `--into`, and of replays with `--check` that were killed."""
    return [path for pattern in ("replay/*", "replay-*") for path in data_dir.glob(pattern) if path.is_dir()]


def _begun(folder: Path) -> float:
    """Return the time at which the replay began (epoch ms).

    A replay that has only just begun has no texts yet. For it, return infinity, so that its folder is not removed.
    """
    try:
        return (folder / "plan.json").stat().st_mtime * 1000 if any(folder.glob("*.sqlite")) else float("inf")
    except OSError:
        return float("inf")


def _dropped(folder: Path) -> bool:
    try:
        with contextlib.ExitStack() as held:
            for path in sorted(folder.glob("*.sqlite")):
                held.callback(ReplayProgress(path).close)
            shutil.rmtree(folder)
    except (SiltstoneError, OSError, sqlite3.Error) as exc:
        log.info("an interrupted replay cannot be removed yet: %s", exc)
        return False
    log.warning("an interrupted replay was removed, because a user was forgotten: %s", folder)
    return True
