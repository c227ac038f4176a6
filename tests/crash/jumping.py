"""`python -m tests.crash.jumping FILE worker …`: a worker whose clock goes wrong by as many seconds as FILE says."""

from __future__ import annotations

import sys
import time
from pathlib import Path


def jump_by(file: Path) -> None:
    """From now on `time.time` and `time.time_ns` are off; the monotonic clock is not."""
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + _seconds(file)
    time.time_ns = lambda: right_ns() + _seconds(file) * 1_000_000_000


def _seconds(file: Path) -> int:
    return int(file.read_text(encoding="ascii") or 0) if file.exists() else 0


if __name__ == "__main__":
    _, wrong_by, *command = sys.argv
    jump_by(Path(wrong_by))
    from tests.support.toy_worker import siltstone

    siltstone(command)
