"""Sets up the process of a command: umask, logging, event loop and garbage collector."""

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
#: Thresholds of Python's garbage collector: the number of new objects until a collection, then the numbers of
#: collections of a younger generation until the next older one is collected. Windows are large, live long and have no
#: reference cycles. With Python's defaults, the collector would scan the windows so often that this would take half
#: of the intake's time.
COLLECT_AFTER = 100_000, 20, 1_000


#: Seconds for which a thread may keep Python's interpreter lock (GIL) while other threads wait for it. A shard's
#: thread needs the lock for every SQL statement. With Python's default, it would wait 5 ms for each statement while
#: the main thread processes a batch.
SWITCH_SECONDS = 0.0005


#: The loggers of the Kafka clients. They log a line at each failed attempt to connect to a broker.
CLIENTS = ("aiokafka", "kafka")
LIBRARIES = (*CLIENTS, "faust", "httpx", "httpx2", "mcp", "mode", "uvicorn")
#: The loggers of our modules that subclass Faust's classes. Faust's own code also logs under these names.
FAUSTS = ("streams.kafka.faust", "streams.kafka.faust.recovery")
#: Loggers that log the same line again at each retry.
REPEATING = (*CLIENTS, "faust", "mode", "streams.kafka.commit.outbox", "streams.kafka.faust")


def configure_logging(level: str, *, serving: bool = False) -> None:
    """Send log lines to standard error. Libraries log only warnings or errors, but at level DEBUG also INFO lines.

    A worker (`serving`) logs warnings of the Kafka clients, and counts repeated lines. Other commands do not log
    these warnings, because the commands themselves report an unreachable broker in one line.
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
    """Set the umask of this process by the permissions of the data directory.

    Then only the user of this process can access new files. If the directory gives its group access, the group can
    access new files too.
    """
    os.umask(umask_of(data))


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on uvloop, and return its result. Garbage collections are rare, and thread switches are frequent."""
    gc.set_threshold(*COLLECT_AFTER)
    sys.setswitchinterval(SWITCH_SECONDS)
    return uvloop.run(_leaving_nothing(main))


async def _leaving_nothing(main: Coroutine[Any, Any, T]) -> T:
    """Run `main`, then cancel the remaining tasks again and again until they have ended, for a limited time.

    The event loop would cancel them only once, and tasks of Faust ignore that if the broker does not answer.
    """
    try:
        return await main
    finally:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in await ended(left, LEAVE_SECONDS, first=AGAIN_SECONDS):
            log.error("task does not end: %r", task)
