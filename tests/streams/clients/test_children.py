"""What a child process finds in its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import pytest

from schemas.one_blas_thread import ONE_THREAD
from streams.clients.children import Spawning

VARIABLES = {"SILTSTONE_TEST_A": "1", "SILTSTONE_TEST_B": "1"}


def found(context: Spawning) -> list[str | None]:
    """In a child."""
    with ProcessPoolExecutor(1, mp_context=context) as process:
        return list(process.map(os.getenv, VARIABLES))


@pytest.fixture(autouse=True)
def _one_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILTSTONE_TEST_A", "4")


def test_a_child_has_the_variables() -> None:
    assert found(Spawning(VARIABLES)) == ["1", "1"]


def test_what_the_environment_says_can_be_kept() -> None:
    assert found(Spawning(VARIABLES, keep=True)) == ["4", "1"]


def test_our_own_environment_stays_as_it_was() -> None:
    before = dict(os.environ)
    found(Spawning(VARIABLES))
    assert dict(os.environ) == before


def test_one_thread_is_said_to_each_library() -> None:
    assert {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} <= ONE_THREAD.keys()
    assert set(ONE_THREAD.values()) == {"1"}


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells a child of its parent's death")
@pytest.mark.parametrize(("parent", "lives"), [("os.getppid()", True), ("os.getppid() + 1", False)])
def test_a_child_whose_parent_died_while_it_started_ends_itself(parent: str, lives: bool) -> None:
    """It has another parent by then, whose death would be no news either."""
    program = (
        f"import os; from streams.clients.children import die_with_parent; die_with_parent({parent}); print('on')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode == 0, done.stdout == "on\n") == (lives, lives), done.stderr
