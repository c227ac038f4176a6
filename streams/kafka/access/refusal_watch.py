"""Detects that a broker refuses a running worker, for instance after a change of the password or of a certificate."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from schemas.errors import BrokerRefused
from streams.runtime.outages import Outage, Told

log = logging.getLogger(__name__)

#: Seconds between two requests to a broker that cannot be reached.
ASK_SECONDS = 5.0


class RefusalWatch:
    """Checks, while the worker cannot reach its broker, whether the broker refuses the worker.

    The clients retry forever, and do not report a refusal. `ask` sends a request to the broker,
    and returns the refusal; None if the broker does not refuse us.
    """

    def __init__(
        self, ask: Callable[[], Awaitable[BrokerRefused | None]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._monotonic = ask, monotonic
        self._asked_at = float("-inf")
        self._outage = Outage(monotonic)
        #: The reason of the refusal; empty if the broker does not refuse us.
        self.reason = ""

    async def tick(self, *, reached: bool) -> None:
        """Ask the broker whether it refuses us, unless it is `reached` or was asked less than `ASK_SECONDS` ago.

        Log a refusal when it begins, once a minute while it lasts, and when the broker is reached again.
        """
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
