"""A log with a few events, and an empty store of checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tables.checkpoints.checkpoints import Checkpoints
from tests.streams.shards.restore.house import Log


@pytest.fixture
def log() -> Log:
    log = Log()
    log.say(5)
    return log


@pytest.fixture
def store(tmp_path: Path) -> Checkpoints:
    return Checkpoints((tmp_path / "store").as_uri())
