"""A fuzzer that sees which lines an input reaches looks for one that stops a worker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

RUNS = 200
OPTIONS = ["-seed=1", "-max_len=200000", "-len_control=0", "-rss_limit_mb=2048"]
#: Of our own code, in the fuzzer's units; what its first input reaches is far less.
COVERED = 1300


def fuzzed(folder: Path, *options: str) -> tuple[int, str]:
    """How it ended, and what it said."""
    command = [sys.executable, "-m", "tests.fuzz.target", str(folder), *OPTIONS, *options]
    root = Path(__file__).parent.parent.parent
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def logs_that_failed(folder: Path) -> list[Path]:
    return [*folder.glob("crash-*"), *folder.glob("oom-*")]


def test_nothing_is_found_that_would_stop_a_worker(tmp_path: Path) -> None:
    """From other seeds than these: `python -m tests.fuzz.target FOLDER -seed=… -max_total_time=…`."""
    status, said = fuzzed(tmp_path, f"-runs={RUNS}")
    assert status == 0, said[-5000:]
    assert f"Done {RUNS} runs" in said
    assert logs_that_failed(tmp_path) == []
    assert int(re.findall(r"cov: (\d+)", said)[-1]) > COVERED


def test_what_would_stop_one_is_found_and_left_behind(tmp_path: Path) -> None:
    """A fault that only what is hostile reaches; the log that does so stops nobody who has not that fault."""
    folder = tmp_path / "broken"
    folder.mkdir()
    status, said = fuzzed(folder, "--broken", f"-runs={4 * RUNS}")
    assert status != 0
    assert "AssertionError" in said
    (log,) = logs_that_failed(folder)
    assert fuzzed(tmp_path, str(log))[0] == 0
