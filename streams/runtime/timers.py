"""Timers, which repeat the background work of a worker at fixed intervals."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Protocol

from schemas.errors import SiltstoneError
from streams.runtime.ending import ended
from streams.runtime.outages import Outage, Told

log = logging.getLogger(__name__)

#: Called with an exception that must not be ignored, and the name of the timer that raised it.
OnFailure = Callable[[Exception, str], None]


class Timer(StrEnum):
    """The names of all timers."""

    SESSIONS = "sessions"
    NOTES = "notes"
    ACCESSES = "accesses"
    AGING = "aging"
    SAVING = "saving"
    SEARCH_ROWS = "search rows"
    RETENTION = "retention"
    TOPICS = "topics"
    DAY_FILES = "day files"
    REPLAYS = "replays"
    ERASING = "erasing"
    FORMER_SHARDS = "former shards"
    FORMER_WINDOWS = "former windows"
    HELD_PARTITIONS = "held partitions"
    FREE_MEMORY = "free memory"
    ANALYTICS = "analytics"
    CHECKPOINTS = "checkpoints"
    WARM_COPIES = "warm copies"
    REFUSALS = "refusals"
    STALLS = "stalls"
    BROKERS = "brokers"
    TOPIC_IDS = "topic ids"


_OWN_SHARD: Final = "a shard of this worker cannot be written, so new events of the log could not be either"
#: The timers whose failure stops the worker, each with the reason. A failure of any other timer is logged and
#: counted, and the timer continues.
MAY_HALT: Final[Mapping[Timer, str]] = MappingProxyType(
    {
        Timer.SESSIONS: "sessions would no longer end, and their exchanges not be promoted",
        Timer.NOTES: "notes would not expire",
        Timer.ACCESSES: "accesses would not count against ageing, and would pile up in memory",
        Timer.AGING: _OWN_SHARD,
        Timer.SAVING: _OWN_SHARD,
        Timer.SEARCH_ROWS: _OWN_SHARD,
        Timer.RETENTION: _OWN_SHARD,
        Timer.TOPICS: "topics were deleted; the worker creates them when it starts again",
    }
)


class Failures(Protocol):
    """A counter of `prometheus_client` with the label `timer`."""

    def labels(self, timer: str) -> Any: ...


class Timers:
    """A worker's timers, and tasks that run beside them. `close` ends all of them.

    If a timer in `MAY_HALT` raises an exception, the timer ends, and `on_failure` gets the exception. Exceptions of
    all other timers are counted in `failures`, and these timers continue.
    """

    def __init__(self, on_failure: OnFailure, failures: Failures) -> None:
        self._on_failure, self._failures = on_failure, failures
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def every(self, timer: Timer, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Repeat the work, with a pause of `seconds` before each time."""

        async def run() -> None:
            outage = Outage()
            while True:
                await asyncio.sleep(seconds)
                try:
                    await work()
                except Exception as exc:
                    if timer in MAY_HALT:
                        self._on_failure(exc, f"the timer of {timer}")
                        return
                    self._failures.labels(timer=timer).inc()
                    if outage.seen(amiss=True) is not None:
                        log.error("the timer of %s fails, and is tried again: %s", timer, _told(exc))
                else:
                    if outage.seen(amiss=False) is Told.IS_OVER:
                        log.info("the timer of %s works again", timer)

        self.beside(run())

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Start the work as a task of its own. After `close`, nothing is started."""
        if self._closed:
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End all timers and tasks."""
        self._closed = True
        await ended(list(self._tasks))


def _told(exc: Exception) -> str:
    """Return the exception as one line for the log.

    An exception of a library may quote a user's message, so its line has only its type and the place in the code.
    """
    if isinstance(exc, SiltstoneError | OSError):
        return f"{type(exc).__name__}: {exc}"
    frames = traceback.extract_tb(exc.__traceback__)
    return f"{type(exc).__name__} at {frames[-1].filename}:{frames[-1].lineno}" if frames else type(exc).__name__
