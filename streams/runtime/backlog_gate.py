"""Who goes first when there is more to do than can be done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

#: Records that are not yet processed, about a third of a second's work; fewer are no backlog.
BACKLOG: Final = 10_000
LOOK_AGAIN_SECONDS: Final = 0.05


class BacklogGate:
    """Long-term work waits while a backlog of conversations is taken in.

    Windows are current the sooner, and what is promoted waits in its topic meanwhile, where it is safe. It
    waits no longer than `seconds` from the beginning of a backlog, so one that does not end starves nothing.
    """

    def __init__(
        self, lag: Callable[[], int], seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._lag, self._seconds, self._monotonic = lag, seconds, monotonic
        self._backlog_since: float | None = None

    def must_wait(self) -> bool:
        """Whether long-term work is not to begin now."""
        if self._lag() < BACKLOG:
            self._backlog_since = None
            return False
        now = self._monotonic()
        if self._backlog_since is None:
            self._backlog_since = now
        return now - self._backlog_since < self._seconds

    async def wait(self) -> None:
        """Until long-term work may go on. Call `must_wait` on a timer as well: a backlog may end unasked."""
        while self.must_wait():  # noqa: ASYNC110 - lag is a number in another thread, without a notification
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
