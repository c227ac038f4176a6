"""A broker that has let a worker in may refuse it later: after a change of the password, or of a certificate."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from schemas.errors import BrokerRefused
from streams.runtime.outages import Outage, Told

log = logging.getLogger(__name__)

#: How often a broker that is not reached is asked why.
ASK_SECONDS = 5.0


class RefusalWatch:
    """Looks, while the broker is not reached, whether it is there and lets us not in; the clients go on trying."""

    def __init__(
        self, ask: Callable[[], Awaitable[BrokerRefused | None]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._monotonic = ask, monotonic
        self._asked_at = float("-inf")
        self._outage = Outage(monotonic)
        #: Why we are not let in; empty where that is not so.
        self.reason = ""

    async def tick(self, *, reached: bool) -> None:
        """Ask where it is time to, and tell it when it begins, once a minute, and when it is over."""
        now = self._monotonic()
        if reached:
            self.reason = ""
            if self._outage.seen(amiss=False) is Told.IS_OVER:
                log.warning("Kafka lets us in again")
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
