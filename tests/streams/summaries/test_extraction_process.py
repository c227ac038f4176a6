"""Summaries are made in a process of their own, whatever becomes of it."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
import uvloop

from schemas.conversations import Role
from schemas.exchanges import Message
from schemas.settings import MemorySettings
from streams.intake.rules.exchanges import Limits
from streams.summaries import extraction_process
from streams.summaries.extraction_process import EXTRACTION_NICE, ExtractionProcess
from streams.summaries.requests import summary_request
from streams.summaries.rules.drafting import Order, drafted
from tests.streams.kafka.clients.troubled import made_in_trouble
from tests.support.making import START
from tests.support.waiting import until


def order(*said: str) -> Order:
    messages = [("s", Message(f"m{i}", Role.USER, text, START + i * 1000, None, None)) for i, text in enumerate(said)]
    request = summary_request(uuid.UUID(int=1), "u", date(2026, 1, 1), "count", messages)
    return Order(
        requests=(request.model_dump_json().encode(),),
        limits=Limits.of(MemorySettings()),
        language="auto",
        timezone=ZoneInfo("UTC"),
        reason="count",
        written_at=START,
    )


def status_of(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text(encoding="ascii")


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest_asyncio.fixture
async def process() -> AsyncIterator[ExtractionProcess]:
    one = ExtractionProcess()
    yield one
    await one.close()


@pytest.fixture
def troubled(process: ExtractionProcess, monkeypatch: pytest.MonkeyPatch) -> ExtractionProcess:
    monkeypatch.setattr(extraction_process, "made", made_in_trouble)
    return process


@pytest.mark.slow
async def test_a_draft_is_what_it_would_be_here(process: ExtractionProcess) -> None:
    """There is no process before the first order."""
    assert process.pid is None
    orders = [order("I like tea", "We use DuckDB, because it is one file."), order("我喜欢猫"), order("")]
    assert await process.drafted(orders) == [drafted(one) for one in orders]
    assert process.pid is not None


@pytest.mark.slow
async def test_it_gives_way_and_has_one_thread(process: ExtractionProcess) -> None:
    await process.drafted([order("I like tea")])
    assert process.pid is not None
    assert "Threads:\t1\n" in status_of(process.pid)
    nice = os.getpriority(os.PRIO_PROCESS, 0) + EXTRACTION_NICE
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(19, nice)


@pytest.mark.slow
def test_it_loads_neither_faust_nor_a_model() -> None:
    script = (
        "import sys, streams.summaries.extraction;"
        "print([name for name in ('faust', 'faiss', 'duckdb', 'aiokafka', 'fast_use') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True, env=environment())
    assert done.stdout.strip() == b"[]"


@pytest.mark.slow
async def test_one_that_is_killed_is_started_again(process: ExtractionProcess) -> None:
    asked = order("I like tea")
    (first,) = await process.drafted([asked])
    former = process.pid
    assert former is not None
    os.kill(former, signal.SIGKILL)
    drafts = [*await process.drafted([asked]), *await process.drafted([asked])]
    assert drafts[-1] == first
    assert process.pid not in (None, former)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["die now", "divide by zero"])
async def test_what_cannot_be_summed_up_costs_nobody_else_a_summary(troubled: ExtractionProcess, word: str) -> None:
    orders = [order("I like tea"), order(word), order("我喜欢猫")]
    first, bad, last = await troubled.drafted(orders)
    assert bad is None
    assert (first, last) == (drafted(orders[0]), drafted(orders[2]))


@pytest.mark.slow
@pytest.mark.usefixtures("troubled")
async def test_what_does_not_come_to_an_end_is_ended() -> None:
    quick = ExtractionProcess(seconds=2.0)  # the first English day takes 0.3 to read its words
    first, stuck, last = await quick.drafted([order("I like tea"), order("go on for ever"), order("我喜欢猫")])
    assert (first is None, stuck is None, last is None) == (False, True, False)
    assert await quick.drafted([order("go on for ever")]) == [None]
    assert quick.pid is None
    await quick.close()


@pytest.mark.slow
async def test_what_it_prints_is_no_answer(troubled: ExtractionProcess) -> None:
    asked = order("print it, I like tea")
    assert await troubled.drafted([asked]) == [drafted(asked)]


@pytest.mark.slow
async def test_who_is_cancelled_gets_nobody_elses_answer(troubled: ExtractionProcess) -> None:
    waiting = asyncio.ensure_future(troubled.drafted([order("go on for ever")]))
    await asyncio.sleep(0.5)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    asked = order("I like tea")
    assert await troubled.drafted([asked]) == [drafted(asked)]


async def test_a_process_that_cannot_be_started_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert await ExtractionProcess().drafted([order("I like tea")]) == [None]


@pytest.mark.slow
def test_one_that_died_while_it_had_nothing_to_do_costs_no_summary() -> None:
    """On the worker's own event loop as well."""

    async def died_in_between() -> None:
        process = ExtractionProcess()
        try:
            assert await process.drafted([order("I live in Oslo.")]) != [None]
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            await until(lambda: process._process.gone)
            assert await process.drafted([order("I live in Oslo.")]) != [None]
        finally:
            await process.close()

    uvloop.run(died_in_between())


@pytest.mark.slow
async def test_it_dies_with_the_worker(tmp_path: Path) -> None:
    """However the worker dies."""
    script = f"""
import asyncio, os, pickle, signal
from streams.summaries.extraction_process import ExtractionProcess

async def main():
    process = ExtractionProcess()
    await process.drafted([pickle.loads({pickle.dumps(order("I like tea"))!r})])
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        check=False,
        env=environment(),
    )
    await until(lambda: not Path(f"/proc/{int(done.stdout)}").exists())
