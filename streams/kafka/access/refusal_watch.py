"""Notices that a broker refuses a worker later: after a change of the password, or of a certificate."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from schemas.errors import BrokerRefused
from streams.runtime.outages import Outage, Told

log = logging.getLogger(__name__)

#: Interval of the requests to a broker that is not reached.
ASK_SECONDS = 5.0


class RefusalWatch:
    """Checks, while the broker is not reached, whether it answers and refuses us; the clients go on trying."""

    def __init__(
        self, ask: Callable[[], Awaitable[BrokerRefused | None]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._monotonic = ask, monotonic
        self._asked_at = float("-inf")
        self._outage = Outage(monotonic)
        #: Why the broker refuses us; empty if it does not.
        self.reason = ""

    async def tick(self, *, reached: bool) -> None:
        """Ask if it is time to, and log a refusal when it begins, once a minute, and when it is over."""
        now = self._monotonic()
        if reached:
            self.reason = ""
            if self._outage.seen(amiss=False) is Told.IS_OVER:
                log.warning("Kafka grants access again")
            return
        if now - self._asked_at < ASK_SECONDS:
            return
        self._asked_at = now
        refused = await self._ask()
        reason = "" if refused is None else str(refused)
        if reason != self.reason:
            self.reason, self._outage = reason, Outage(self._monotonic)
        if self._outage.seen(amiss=bool(reason)) is not None:
            log.error("%s", reason)
