"""Child processes: they end with their parent, and have one thread for arithmetic."""

from __future__ import annotations

import subprocess
import sys

import pytest

from schemas.one_blas_thread import ONE_THREAD


def test_one_thread_is_said_to_each_library() -> None:
    assert {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} <= ONE_THREAD.keys()
    assert set(ONE_THREAD.values()) == {"1"}


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells a child of its parent's death")
@pytest.mark.parametrize(("parent", "lives"), [("os.getppid()", True), ("os.getppid() + 1", False)])
def test_a_child_whose_parent_died_while_it_started_ends_itself(parent: str, lives: bool) -> None:
    """It has another parent by then, whose death would be no news either."""
    program = (
        f"import os; from streams.runtime.children import die_with_parent; die_with_parent({parent}); print('on')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode == 0, done.stdout == "on\n") == (lives, lives), done.stderr
