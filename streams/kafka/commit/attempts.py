"""Attempts to commit: the time for which they have failed, and the reason."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Failing(NamedTuple):
    """No attempt to commit has succeeded for `seconds`, because of `reason`."""

    seconds: float
    reason: str


class Attempts:
    """Tracks attempts to commit. An attempt that does not end counts as failed."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._since: float | None = None
        self._reason, self._under_way = "", False

    def begin(self) -> None:
        """Note the start of an attempt."""
        self._under_way = True
        if self._since is None:
            self._since = self._monotonic()

    def fail(self, reason: str) -> None:
        """Note that the attempt has failed; another one follows."""
        self._reason, self._under_way = reason, False

    def succeed(self) -> None:
        """Note that the attempt has succeeded."""
        self._since, self._reason, self._under_way = None, "", False

    def failing(self, waits_for: str) -> Failing | None:
        """Return the seconds for which no attempt has succeeded, and the reason.

        None if no attempt was begun since the last one that succeeded. While an attempt runs, the reason is
        `waits_for`, unless that is empty. Otherwise the reason is the error of the last failed attempt.
        """
        if self._since is None:
            return None
        reason = (waits_for if self._under_way else "") or self._reason or "the broker does not answer"
        return Failing(self._monotonic() - self._since, reason)
