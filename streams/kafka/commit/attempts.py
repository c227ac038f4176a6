"""Measures the time for which all attempts to commit have failed, and keeps the reason."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Failing(NamedTuple):
    """No attempt to commit has succeeded for `seconds`, because of `reason`."""

    seconds: float
    reason: str


class Attempts:
    """Tracks attempts to commit. The time of an attempt that does not end counts as time without success."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._since: float | None = None
        self._reason, self._under_way = "", False

    def begin(self) -> None:
        """Note that an attempt to commit has started."""
        self._under_way = True
        if self._since is None:
            self._since = self._monotonic()

    def fail(self, reason: str) -> None:
        """Note that the attempt to commit has failed. Another attempt follows."""
        self._reason, self._under_way = reason, False

    def succeed(self) -> None:
        """Note that the attempt to commit has succeeded."""
        self._since, self._reason, self._under_way = None, "", False

    def failing(self, waits_for: str) -> Failing | None:
        """Return the seconds for which no attempt to commit has succeeded, and the reason.

        Return None if no attempt has started since the last success. While an attempt runs, the reason is
        `waits_for`, unless this text is empty. Otherwise the reason is the error of the last failed attempt.
        """
        if self._since is None:
            return None
        reason = (waits_for if self._under_way else "") or self._reason or "the broker does not answer"
        return Failing(self._monotonic() - self._since, reason)
