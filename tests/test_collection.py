"""Every process that runs the tests collects the same ones.

pytest-xdist compares what its processes collected and ends with an error when they differ. They
do when the name of a test holds the time, a random value or the order of a set.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow


def collected(hash_seed: int) -> list[str]:
    """The names of all tests, as a new process with this seed of hashes collects them."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-o", "addopts=", "-p", "no:randomly"]
    command += ["-p", "no:cacheprovider", "--ignore=tests/adapters", "tests"]
    found = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in found.stdout.splitlines() if "::" in line]


def test_two_processes_collect_the_same_tests() -> None:
    # The second process starts seconds after the first, so a name that holds the time differs.
    first, second = collected(1), collected(2)
    assert len(first) > 5_000
    assert set(first) ^ set(second) == set()
    assert first == second
