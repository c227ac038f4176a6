"""Functions that are called in a process of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from streams.runtime.called_process import CalledProcess, ProcessDied
from tests.support.waiting import until


@pytest_asyncio.fixture
async def process() -> AsyncIterator[CalledProcess]:
    one = CalledProcess("test", {"SILTSTONE_TEST": "1"})
    yield one
    await one.close()


def _told(number: int, seconds: float = 0.0) -> tuple[int, bytes]:
    """More than a socket holds."""
    time.sleep(seconds)
    return number, bytes(1 << 20)


def _raising() -> None:
    raise KeyError("in the process")


class Unpicklable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__("only one argument")


def _raising_what_cannot_be_told() -> None:
    raise Unpicklable(1, 2)


@pytest.mark.slow
async def test_each_caller_gets_its_own_answer(process: CalledProcess) -> None:
    assert process.pid is None
    answers = await asyncio.gather(*(process.call(_told, number) for number in range(20)))
    assert answers == [(number, bytes(1 << 20)) for number in range(20)]


async def test_it_has_the_variables_and_ours_stay_as_they_were(process: CalledProcess) -> None:
    before = dict(os.environ)
    assert await process.call(os.getenv, "SILTSTONE_TEST") == "1"
    assert dict(os.environ) == before


async def test_it_gives_way_where_it_should() -> None:
    one = CalledProcess("test", {}, niceness=7)
    assert await one.call(os.nice, 0) == min(19, os.nice(0) + 7)
    await one.close()


@pytest.mark.skipif(sys.platform != "linux", reason="its command line is read in /proc")
async def test_its_name_is_in_the_list_of_processes(process: CalledProcess) -> None:
    pid = await process.call(os.getpid)
    command = await asyncio.to_thread(Path(f"/proc/{pid}/cmdline").read_bytes)
    assert command.endswith(b"\0test\0")


async def test_what_a_function_raises_is_raised(process: CalledProcess) -> None:
    with pytest.raises(KeyError, match="in the process"):
        await process.call(_raising)
    with pytest.raises(RuntimeError, match="Unpicklable"):
        await process.call(_raising_what_cannot_be_told)
    assert (await process.call(_told, 1))[0] == 1


@pytest.mark.slow
async def test_who_is_cancelled_gets_nobody_elses_answer(process: CalledProcess) -> None:
    await process.call(_told, 0)
    waiting = asyncio.ensure_future(process.call(_told, 1, 0.3))
    await asyncio.sleep(0.1)
    waiting.cancel()
    assert (await process.call(_told, 2))[0] == 2


async def test_one_that_dies_fails_all_who_wait_and_all_who_come(process: CalledProcess) -> None:
    await process.call(_told, 0)
    waiting = [asyncio.ensure_future(process.call(_told, number, 5)) for number in range(3)]
    await asyncio.sleep(0)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    for one in waiting:
        with pytest.raises(ProcessDied, match="has died"):
            await one
    assert process.gone
    with pytest.raises(ProcessDied):
        await process.call(_told, 4)


async def test_one_that_cannot_be_started_says_so(process: CalledProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ProcessDied, match=r"cannot be started .*No such file"):
        await process.call(_told, 1)
    assert process.gone


async def test_nothing_is_left_of_one_that_is_closed() -> None:
    """Though it was at work."""
    one = CalledProcess("test", {})
    await one.call(_told, 0)
    waiting = asyncio.ensure_future(one.call(_told, 1, 30))
    await asyncio.sleep(0.1)
    await one.close()
    assert one._child is not None
    assert one._child.returncode == -signal.SIGKILL
    with pytest.raises(ProcessDied):
        await waiting


@pytest.mark.slow
async def test_it_ends_when_nobody_can_ask_it_any_more() -> None:
    """As where its parent dies on a system that tells no child."""
    one = CalledProcess("test", {})
    await one.call(_told, 0)
    assert one._connected is not None
    (await one._connected).close()
    assert one._child is not None
    await until(lambda: one._child is not None and one._child.poll() == 0)
    await one.close()
