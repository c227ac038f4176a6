"""Children of tests take a Ctrl-C, though the tests' runner ignores it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.signals import default_signals
from tests.support.waiting import PATIENCE, until
from tests.support.workers import WorkerProcess

#: A program that says whether it ignores what a runner in the background does.
SAYS = "import signal; print(*(signal.getsignal(n) == signal.SIG_IGN for n in (signal.SIGINT, signal.SIGHUP)))"
WAITS = (sys.executable, "-c", "import sys, time; print('up', file=sys.stderr, flush=True); time.sleep(600)")


@pytest.fixture
def ignored() -> Iterator[None]:
    """As in a runner that was started with `nohup … &`."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("prepared", "said"), [(None, "True True"), (default_signals, "False False")])
def test_a_child_ignores_nothing_that_its_parent_does(
    ignored: None, prepared: Callable[[], None] | None, said: str
) -> None:
    """Without the help it does."""
    answer = subprocess.run(
        [sys.executable, "-c", SAYS], preexec_fn=prepared, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == said


async def test_a_worker_is_interrupted(ignored: None, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        process = WorkerProcess(WAITS, 1, os.environ, log)
    try:
        await until(lambda: "up" in process.log.read_text(), alive=process)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == -signal.SIGINT
    finally:
        process.kill()
        process.wait()
