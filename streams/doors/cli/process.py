"""The process of a command: its umask, its log lines, its event loop, and its garbage collector."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from streams.kafka.repeats import Repeats
from streams.runtime.ending import AGAIN_SECONDS, ended
from tables.privacy import umask_of

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Seconds that a stopped worker's remaining tasks may take to end.
LEAVE_SECONDS = 5.0
#: Thresholds of the garbage collector: new objects, then collections of each younger generation. Windows are large,
#: live long and hold no cycles: with Python's defaults, scanning them repeatedly takes half of the intake's time.
COLLECT_AFTER = 100_000, 20, 1_000


#: Seconds for which a thread may keep the interpreter while others wait for it. A shard's thread needs it at every
#: statement, and waited 5 ms each time (Python's default) while a batch was processed.
SWITCH_SECONDS = 0.0005


#: The Kafka clients, which log an unreachable server at each attempt.
CLIENTS = ("aiokafka", "kafka")
LIBRARIES = (*CLIENTS, "faust", "httpx", "httpx2", "mcp", "mode", "uvicorn")
#: Our modules under whose names Faust also logs, because they subclass its classes.
FAUSTS = ("streams.kafka.faust", "streams.kafka.faust.recovery")
#: Loggers that repeat a line at each retry.
REPEATING = (*CLIENTS, "faust", "mode", "streams.kafka.commit.outbox", "streams.kafka.faust")


def configure_logging(level: str, *, serving: bool = False) -> None:
    """Send log lines to standard error; of the libraries, only warnings and errors.

    Warnings of the Kafka clients reach the log of a worker (`serving`), where repeats are counted. A command reports
    an unreachable server itself, in one line. At DEBUG, the libraries' INFO lines are logged too: they help to find a
    fault.
    """
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True)
    if level == "DEBUG":
        for name in LIBRARIES:
            logging.getLogger(name).setLevel(logging.INFO)
        for name in FAUSTS:
            logging.getLogger(name).setLevel(logging.NOTSET)
        return
    for name in ("faust", "mcp", "mode", "httpx", "httpx2", "streams.kafka.faust"):
        logging.getLogger(name).setLevel(logging.ERROR)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("streams.kafka.faust.recovery").setLevel(max(logging.WARNING, logging.getLogger().level))
    for name in CLIENTS:
        logging.getLogger(name).setLevel(logging.WARNING if serving else logging.CRITICAL)
    for handler in logging.getLogger().handlers:
        handler.addFilter(Repeats(REPEATING))


def write_as_let_in(data: Path) -> None:
    """Set the umask: new files are for the data directory's owner, and for its group if the directory allows it."""
    os.umask(umask_of(data))


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, with a garbage collector that rarely scans the windows, and with frequent thread switches."""
    gc.set_threshold(*COLLECT_AFTER)
    sys.setswitchinterval(SWITCH_SECONDS)
    return uvloop.run(_leaving_nothing(main))


async def _leaving_nothing(main: Coroutine[Any, Any, T]) -> T:
    """End all remaining tasks. With an unresponsive broker, Faust's leftovers ignore the loop's one cancellation."""
    try:
        return await main
    finally:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in await ended(left, LEAVE_SECONDS, first=AGAIN_SECONDS):
            log.error("task does not end: %r", task)
