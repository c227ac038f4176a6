"""The process of a command: its log lines, its event loop, and its garbage collector."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

#: New objects before the youngest generation is collected, and how many of its collections make an older one's.
#: Windows are large, live long and hold no cycles: with Python's own numbers, looking through them again and again
#: takes half of the intake's time.
COLLECT_AFTER = 100_000, 20, 1_000


#: Seconds for which a thread may keep the interpreter while others want it. A shard's thread asks for it at every
#: statement, and while a batch was taken in it waited 5 ms each time, Python's own number.
SWITCH_SECONDS = 0.0005


LIBRARIES = ("aiokafka", "faust", "httpx", "httpx2", "kafka", "mode", "uvicorn")


def configure_logging(level: str) -> None:
    """Log lines go to standard error; of the libraries, only what they warn of.

    At DEBUG, what they inform of as well: whoever looks for a fault wants to see theirs.
    """
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True)
    if level == "DEBUG":
        for name in LIBRARIES:
            logging.getLogger(name).setLevel(logging.INFO)
        logging.getLogger("streams.hotpath.overrides").setLevel(logging.NOTSET)
        return
    for name in ("faust", "mode", "uvicorn", "httpx", "httpx2", "streams.hotpath.overrides"):
        logging.getLogger(name).setLevel(logging.ERROR)
    for name in ("aiokafka", "kafka"):  # what they cannot reach, we say once and with what to do
        logging.getLogger(name).setLevel(logging.CRITICAL)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, with a garbage collector that leaves the windows alone and threads that take turns."""
    gc.set_threshold(*COLLECT_AFTER)
    sys.setswitchinterval(SWITCH_SECONDS)
    return uvloop.run(main)
