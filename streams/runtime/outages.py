"""Outages: a fault is reported when it begins, once a minute while it lasts, and when it is over."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable

REMINDER_SECONDS = 60.0


class Told(enum.Enum):
    """The kind of a report about a fault: the fault begins, goes on, or is over."""

    BEGINS = enum.auto()
    GOES_ON = enum.auto()
    IS_OVER = enum.auto()


class Outage:
    """One fault that may occur, such as a broker that does not answer.

    >>> outage = Outage(lambda: 0.0)
    >>> outage.seen(amiss=True), outage.seen(amiss=True), outage.seen(amiss=False), outage.seen(amiss=False)
    (<Told.BEGINS: 1>, None, <Told.IS_OVER: 3>, None)
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._since: float | None = None
        self._told_at = 0.0
        self._lasted = 0.0

    @property
    def seconds(self) -> float:
        """The seconds that the present outage has lasted so far. If there is none, the seconds of the last one."""
        return self._lasted if self._since is None else self._monotonic() - self._since

    def seen(self, *, amiss: bool) -> Told | None:
        """Record whether a check found the fault (`amiss`). Return the report to log now, or None."""
        now = self._monotonic()
        if not amiss:
            if self._since is None:
                return None
            self._lasted, self._since = now - self._since, None
            return Told.IS_OVER
        if self._since is None:
            self._since = self._told_at = now
            return Told.BEGINS
        if now - self._told_at < REMINDER_SECONDS:
            return None
        self._told_at = now
        return Told.GOES_ON
