"""Of all processes of tests on a machine one has a fleet; which may die with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import one_fleet as module
from tests.support.one_fleet import one_fleet

ROOT = Path(__file__).parents[2]
#: Takes the lock at the place that it is told, says so, and waits for its end.
TAKES = """
import pathlib, sys
from tests.support import one_fleet
one_fleet.PLACE = pathlib.Path(sys.argv[1])
with one_fleet.one_fleet():
    print("taken", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock that no fleet of another test has."""
    monkeypatch.setattr(module, "PLACE", tmp_path / "lock")
    monkeypatch.setattr(module, "_ours", 0)
    monkeypatch.setattr(module, "_held", None)
    return tmp_path / "lock"


@contextmanager
def another(place: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that takes it."""
    command = [sys.executable, "-c", TAKES, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield process
        process.kill()


def has(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return process.stdout.readline() == "taken\n"


def is_taken(place: Path) -> bool:
    """Whether a process that does not wait is refused."""
    asks = "import fcntl, sys; fcntl.flock(open(sys.argv[1], 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    return (
        subprocess.run([sys.executable, "-c", asks, str(place)], stderr=subprocess.DEVNULL, check=False).returncode
        != 0
    )


def test_a_second_process_has_to_wait(place: Path) -> None:
    with one_fleet():
        assert is_taken(place)
    assert not is_taken(place)


def test_within_a_process_it_is_held_to_the_end_of_the_outermost_block(place: Path) -> None:
    with one_fleet():
        with one_fleet():
            assert is_taken(place)
        assert is_taken(place)
    assert not is_taken(place)


def test_it_is_let_go_where_a_block_fails(place: Path) -> None:
    with pytest.raises(ZeroDivisionError), one_fleet():
        _ = 1 / 0
    assert not is_taken(place)


def test_it_ends_with_its_process(place: Path) -> None:
    """The one that is killed while others wait."""
    with another(place) as first:
        assert has(first)
        with another(place) as second:
            first.kill()
            assert has(second)
