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

#: The maximum number of seconds to wait until the remaining tasks of a stopped worker have ended.
LEAVE_SECONDS = 5.0
#: Thresholds of the garbage collector: the number of new objects, then the number of collections of each younger
#: generation. Windows are large, live long and have no reference cycles. With Python's defaults, the collector would
#: scan them so often that it takes half of the intake's time.
COLLECT_AFTER = 100_000, 20, 1_000


#: Seconds for which a thread may keep Python's interpreter lock while other threads wait for it. A shard's thread
#: needs the lock at every SQL statement. With Python's default, it would wait 5 ms each time while a batch is
#: processed.
SWITCH_SECONDS = 0.0005


#: The loggers of the Kafka clients, which log an unreachable server at each attempt to connect.
CLIENTS = ("aiokafka", "kafka")
LIBRARIES = (*CLIENTS, "faust", "httpx", "httpx2", "mcp", "mode", "uvicorn")
#: The loggers of our modules that subclass Faust's classes: Faust logs under these names too.
FAUSTS = ("streams.kafka.faust", "streams.kafka.faust.recovery")
#: Loggers that repeat a line at each retry.
REPEATING = (*CLIENTS, "faust", "mode", "streams.kafka.commit.outbox", "streams.kafka.faust")


def configure_logging(level: str, *, serving: bool = False) -> None:
    """Send log lines to standard error. Of the libraries, only warnings or errors are logged.

    Warnings of the Kafka clients are logged in a worker (`serving`), where repeated lines are counted. They are not
    logged in other commands, which report an unreachable server themselves, in one line. At level DEBUG, INFO lines
    of the libraries are logged too, because they help to find a fault.
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
    """Set the umask by the permissions of the data directory.

    Then only its owner can read new files. Its group can read them too if the directory gives the group access.
    """
    os.umask(umask_of(data))


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, with a garbage collector that rarely scans the windows, and with frequent thread switches."""
    gc.set_threshold(*COLLECT_AFTER)
    sys.setswitchinterval(SWITCH_SECONDS)
    return uvloop.run(_leaving_nothing(main))


async def _leaving_nothing(main: Coroutine[Any, Any, T]) -> T:
    """Run `main`, then cancel the remaining tasks until they have ended.

    The event loop would cancel them only once. If the broker does not respond, tasks of Faust ignore this.
    """
    try:
        return await main
    finally:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in await ended(left, LEAVE_SECONDS, first=AGAIN_SECONDS):
            log.error("task does not end: %r", task)
