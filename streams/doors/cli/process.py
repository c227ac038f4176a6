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

#: How long what is left of a worker that has stopped may take to end.
LEAVE_SECONDS = 5.0
#: New objects before the youngest generation is collected, and how many of its collections make an older one's.
#: Windows are large, live long and hold no cycles: with Python's own numbers, looking through them again and again
#: takes half of the intake's time.
COLLECT_AFTER = 100_000, 20, 1_000


#: Seconds for which a thread may keep the interpreter while others want it. A shard's thread asks for it at every
#: statement, and while a batch was taken in it waited 5 ms each time, Python's own number.
SWITCH_SECONDS = 0.0005


#: The Kafka clients: what they cannot reach, they say each time that they try.
CLIENTS = ("aiokafka", "kafka")
LIBRARIES = (*CLIENTS, "faust", "httpx", "httpx2", "mcp", "mode", "uvicorn")
#: Modules of ours under whose names Faust logs as well, because its classes are theirs.
FAUSTS = ("streams.kafka.faust", "streams.kafka.faust.recovery")
#: What is tried again and again, and said each time.
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
    """From now on the process writes for the owner of the data directory, and for a group that was let into it."""
    os.umask(umask_of(data))


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, with a garbage collector that leaves the windows alone and threads that take turns."""
    gc.set_threshold(*COLLECT_AFTER)
    sys.setswitchinterval(SWITCH_SECONDS)
    return uvloop.run(_leaving_nothing(main))


async def _leaving_nothing(main: Coroutine[Any, Any, T]) -> T:
    """What Faust has left behind beside a broker that does not answer would pass over the loop's one cancellation."""
    try:
        return await main
    finally:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in await ended(left, LEAVE_SECONDS, first=AGAIN_SECONDS):
            log.error("not ended: %r", task)
