"""The backlog gate: a worker that cannot keep up processes conversations first, and long-term work afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

#: The smallest number of unprocessed records that counts as a backlog. A worker processes so many in about a third of
#: a second.
BACKLOG: Final = 10_000
LOOK_AGAIN_SECONDS: Final = 0.05


class BacklogGate:
    """Makes long-term work wait while a backlog of conversations is processed, so that windows become current sooner.

    Promotions wait in their topic, where they are safe. Long-term work waits at most `seconds` after the start of a
    backlog: otherwise an endless backlog would block it for ever. `lag` returns the number of unprocessed records.
    """

    def __init__(
        self, lag: Callable[[], int], seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._lag, self._seconds, self._monotonic = lag, seconds, monotonic
        self._backlog_since: float | None = None

    def must_wait(self) -> bool:
        """True if long-term work must not begin now."""
        if self._lag() < BACKLOG:
            self._backlog_since = None
            return False
        now = self._monotonic()
        if self._backlog_since is None:
            self._backlog_since = now
        return now - self._backlog_since < self._seconds

    async def wait(self) -> None:
        """Wait until long-term work may go on.

        Call `must_wait` on a timer as well. Otherwise the end of a backlog would not be noticed while no long-term
        work waits, and the next backlog would count as a part of this one.
        """
        while self.must_wait():  # noqa: ASYNC110 - the lag changes in another thread, which sends no notification
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
