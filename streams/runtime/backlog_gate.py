"""Backlog gate: conversations go before long-term work when the worker cannot keep up with both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

#: Unprocessed records, about a third of a second's work; fewer are no backlog.
BACKLOG: Final = 10_000
LOOK_AGAIN_SECONDS: Final = 0.05


class BacklogGate:
    """Makes long-term work wait while a backlog of conversations is processed.

    So windows become current sooner; promotions wait in their topic, where they are safe. They wait at most
    `seconds` from the start of a backlog, so that an endless backlog does not starve them.
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
        """Wait until long-term work may go on. Call `must_wait` on a timer as well, to notice when a backlog ends."""
        while self.must_wait():  # noqa: ASYNC110 - lag is a number in another thread, without a notification
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
