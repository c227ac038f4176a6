"""The command in the head of each benchmark works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: The program of each command, as `python PATH` or `python -m MODULE`.
COMMAND = re.compile(r"^    python (-m [\w.]+|[\w/.]+)", re.MULTILINE)
BENCHMARKS = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if '"__main__"' in path.read_text())


def commands(benchmark: Path) -> list[str]:
    head = benchmark.read_text(encoding="utf-8").split('"""')[1]
    return COMMAND.findall(head)


def test_each_benchmark_says_how_it_is_run() -> None:
    assert [path.name for path in BENCHMARKS if not commands(path)] == []
    assert len(BENCHMARKS) > 10


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda path: path.stem)
def test_its_command_runs(benchmark: Path) -> None:
    """From the top of a checkout, with nothing set: `--help` in the place of its arguments."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for program in commands(benchmark):
        done = subprocess.run(
            [sys.executable, *program.split(), "--help"], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Usage: ")
