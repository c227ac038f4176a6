"""Reports to the health check and to the log that a worker reads records but cannot commit offsets."""

from __future__ import annotations

import logging
from collections.abc import Callable

from streams.kafka.commit.attempts import Failing
from streams.runtime.outages import Outage, Told
from streams.telemetry.metrics import Metrics

log = logging.getLogger(__name__)


class Stalls:
    """Detects that processed records have not been committed for more than `seconds`."""

    def __init__(self, failing: Callable[[], Failing | None], seconds: float, metrics: Metrics) -> None:
        self._failing, self._seconds, self._metrics = failing, seconds, metrics
        self._outage = Outage()

    @property
    def reason(self) -> str:
        """A text with the time for which commits have failed, and the cause.

        The text is empty if commits succeed, or have failed for at most `seconds`.
        """
        failing = self._failing()
        if failing is None or failing.seconds <= self._seconds:
            return ""
        return f"nothing could be committed for {failing.seconds:.0f} s: {failing.reason}"

    async def tick(self) -> None:
        """Measure the stall. Log it when it begins, once a minute while it lasts, and when it is over."""
        failing = self._failing()
        self._metrics.uncommitted_seconds.set(0.0 if failing is None else failing.seconds)
        reason = self.reason
        match self._outage.seen(amiss=bool(reason)):
            case Told.BEGINS | Told.GOES_ON:
                log.error("%s. The worker tries again; nothing is lost, but nothing new is stored", reason)
            case Told.IS_OVER:
                log.info("offsets are committed again")
