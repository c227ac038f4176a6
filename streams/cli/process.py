"""The process of a command: its log lines, its event loop, and its garbage collector."""

from __future__ import annotations

import gc
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

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
