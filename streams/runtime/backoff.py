"""Backoff: how long to wait before the next attempt."""

from __future__ import annotations

from dataclasses import dataclass

#: More doublings exceed any pause in use; from 1,024 on, a float would overflow.
_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double: seconds before the second attempt (`first`), and the longest pause (`longest`).

    >>> backoff = Backoff(first=0.5, longest=30.0)
    >>> [backoff.after(attempts) for attempts in (1, 2, 3, 6, 7, 1_000_000)]
    [0.5, 1.0, 2.0, 16.0, 30.0, 30.0]
    """

    first: float
    longest: float

    def after(self, attempts: int) -> float:
        """Return the seconds to wait after this number of failed attempts (at least 1)."""
        return min(self.longest, self.first * 2.0 ** min(attempts - 1, _MOST_DOUBLINGS))
