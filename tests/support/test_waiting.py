"""A wait ends when it is so, when it cannot be so any more, or after a long while; and says what it has seen."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.waiting import NoAnswer, until, until_it_is
from tests.support.workers import WorkerProcess

#: A program that says a word on standard error, and waits.
SPEAKS = (sys.executable, "-c", "import sys, time; print('last word', file=sys.stderr, flush=True); time.sleep(600)")


class Worker:
    """As `Siltstone`: it is ready when it has stopped waiting, and stops with an error when it is told to."""

    def __init__(self) -> None:
        self.health, self._stops = self, asyncio.Event()

    def not_ready(self) -> list[str]:
        return ["the shards are being opened"]

    def halt(self) -> None:
        self._stops.set()

    async def stopped(self) -> None:
        await self._stops.wait()
        raise OSError("no room")


@pytest.fixture
def process(tmp_path: Path) -> Iterator[WorkerProcess]:
    with (tmp_path / "log").open("wb") as log:
        process = WorkerProcess(SPEAKS, 1, os.environ, log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def lasting(*answers: object) -> Callable[[], object]:
    """One answer after the other; then the last."""
    left = list(answers)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def ending(command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process, killed where it does not end by itself: `cat` waits for a word."""
    with subprocess.Popen([command], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


async def test_it_returns_when_it_is_so() -> None:
    await until(lasting(0, None, "yes"))


async def test_in_vain_it_says_what_it_waited_for_and_saw_last() -> None:
    with pytest.raises(AssertionError) as told:
        await until(lambda: [] if "apples" else 1, seconds=0)
    assert str(told.value).splitlines()[0].startswith("it did not happen in 0 s: ")
    assert '[] if "apples" else 1' in str(told.value)
    assert "seen last: []" in str(told.value)


async def test_a_function_with_arguments_is_told_with_them() -> None:
    with pytest.raises(AssertionError, match=r"int\('0', base=8\)\nseen last: 0"):
        await until(partial(int, "0", base=8), seconds=0)


async def test_no_answer_is_asked_for_again() -> None:
    asked: list[int] = []

    async def answers() -> bool:
        asked.append(len(asked))
        if len(asked) < 3:
            raise NoAnswer("nothing listens")
        return True

    await until_it_is(answers)
    assert len(asked) == 3


async def test_no_answer_to_the_end_is_told_as_that() -> None:
    async def answers() -> bool:
        raise NoAnswer("nothing listens")

    with pytest.raises(AssertionError, match=r"async def answers[^$]*seen last: no answer \(nothing listens\)"):
        await until_it_is(answers, seconds=0)


async def test_any_other_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await until(lambda: 1 / 0)


async def test_a_process_that_ends_is_waited_for_no_longer(process: WorkerProcess) -> None:
    """With its exit code, and the end of its log."""
    await until(lambda: "last word" in process.log.read_text(), alive=process)
    asyncio.get_running_loop().call_later(0.1, process.kill)
    with pytest.raises(AssertionError) as told:
        await until(lambda: False, alive=process)
    assert f"process {process.pid} has ended with exit code {-signal.SIGKILL}\nlast word" in str(told.value)


async def test_of_a_process_that_runs_its_state_is_told(process: WorkerProcess) -> None:
    with pytest.raises(AssertionError, match=rf"process {process.pid} runs, no answer from /readyz "):
        await until(lambda: False, alive=process, seconds=0)


async def test_one_of_several_processes_is_enough() -> None:
    """Any process will do, and of all it is told how they are."""
    with ending("cat") as lives, ending("false") as ends, pytest.raises(AssertionError) as told:
        await until(lambda: False, alive=(lives, ends))
    assert f"process {lives.pid} runs\nprocess {ends.pid} has ended with exit code 1" in str(told.value)


async def test_what_is_so_when_the_process_has_ended_is_so() -> None:
    with ending("true") as process:
        process.wait()
        await until(lambda: True, alive=process)


async def test_a_worker_that_stops_is_waited_for_no_longer() -> None:
    worker = Worker()
    asyncio.get_running_loop().call_later(0.1, worker.halt)
    with pytest.raises(AssertionError, match=r"the worker has stopped: OSError\('no room'\)"):
        await until(lambda: False, alive=worker)


async def test_of_a_worker_that_runs_it_is_told_what_it_waits_for() -> None:
    with pytest.raises(AssertionError, match="the worker runs; it waits for: the shards are being opened"):
        await until(lambda: False, alive=Worker(), seconds=0)


async def test_a_log_on_our_own_standard_error_is_shown_too(capfd: pytest.CaptureFixture[str]) -> None:
    process = WorkerProcess(SPEAKS, 1, os.environ)
    try:
        await until(lambda: "last word" in process.log.read_text(), alive=process)
        assert "last word" in process.told()
    finally:
        process.kill()
        process.wait()
