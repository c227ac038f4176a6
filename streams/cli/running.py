"""Running a worker from the command line: signals, retries, logging, and a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from schemas.errors import BrokerUnavailable
from schemas.settings import Settings
from streams.app import Siltstone

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds before the first, and at the most between two, attempts to reach the broker.
FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0


#: New objects before the youngest generation is collected, and how many of its collections make an older one's.
#: Windows are large, live long and hold no cycles: with Python's own numbers, looking through them again and again
#: takes half of the intake's time.
COLLECT_AFTER = 100_000, 20, 1_000


def configure_logging(level: str) -> None:
    """Log lines go to standard error; of the libraries, only what they warn of."""
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True)
    for name in ("faust", "mode", "uvicorn", "httpx2", "streams.hotpath.overrides"):
        logging.getLogger(name).setLevel(logging.ERROR)
    for name in ("aiokafka", "kafka"):  # what they cannot reach, we say once and with what to do
        logging.getLogger(name).setLevel(logging.CRITICAL)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, with a garbage collector that leaves the windows alone."""
    gc.set_threshold(*COLLECT_AFTER)
    return uvloop.run(main)


@contextlib.asynccontextmanager
async def started(settings: Settings, *, patient: bool = False) -> AsyncIterator[Siltstone]:
    """A worker that is up; stopped at the end of the block. A patient one waits for its broker."""
    worker = await _start(settings, patient)
    try:
        yield worker
    finally:
        await worker.stop()


async def _start(settings: Settings, patient: bool) -> Siltstone:
    delay = FIRST_RETRY
    while True:
        worker = Siltstone(settings)
        try:
            await worker.start()
            return worker
        except BrokerUnavailable as exc:
            await worker.stop()
            if not patient:
                raise
            log.warning("%s; next attempt in %.0f s", exc, delay)
            await asyncio.sleep(delay)
            delay = min(LONGEST_RETRY, delay * 2)
        except BaseException:
            await worker.stop()
            raise


async def until_ready(worker: Siltstone) -> None:
    """Wait until the worker is ready; raises what stopped it."""
    stopped = asyncio.ensure_future(worker.stopped())
    try:
        while worker.not_ready():
            if stopped.done():
                await stopped
            await asyncio.sleep(0.05)
    finally:
        stopped.cancel()


async def until_interrupted(worker: Siltstone) -> None:
    """Wait for SIGINT or SIGTERM, or for the worker to stop by itself; raises what stopped it."""
    interrupted = asyncio.Event()
    with on_signals(interrupted.set):
        waiting = [asyncio.ensure_future(interrupted.wait()), asyncio.ensure_future(worker.stopped())]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
        finally:
            for task in waiting:
                task.cancel()


@contextlib.contextmanager
def on_signals(call: Callable[[], Any]) -> Any:
    """Call on SIGINT and SIGTERM within the block; a second Ctrl-C while stopping does no harm."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, call)
    yield
    # The handlers stay: what follows is an orderly stop.


Waiter = Callable[[Siltstone], Awaitable[None]]
