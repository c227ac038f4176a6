"""Attempts to commit: since when none has succeeded, and why."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Failing(NamedTuple):
    """Nothing could be committed for so many seconds, for this reason."""

    seconds: float
    reason: str


class Attempts:
    """How the attempts to commit end. One that does not end counts as one that was refused."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._since: float | None = None
        self._reason, self._under_way = "", False

    def begin(self) -> None:
        """An attempt is made."""
        self._under_way = True
        if self._since is None:
            self._since = self._monotonic()

    def fail(self, reason: str) -> None:
        """The attempt has failed, and is made again."""
        self._reason, self._under_way = reason, False

    def succeed(self) -> None:
        """The group has what was to be committed."""
        self._since, self._reason, self._under_way = None, "", False

    def failing(self, waits_for: str) -> Failing | None:
        """How long attempts have failed, and why.

        The reason is what the present attempt `waits_for` (empty: unknown), otherwise how the last attempt ended.
        """
        if self._since is None:
            return None
        reason = (waits_for if self._under_way else "") or self._reason or "the broker does not answer"
        return Failing(self._monotonic() - self._since, reason)
