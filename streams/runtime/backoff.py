"""How long to wait before something is tried again."""

from __future__ import annotations

from dataclasses import dataclass

#: Nothing waits as long as that comes to; from 1,024 on, a float would overflow.
_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double: seconds before the second attempt, and the most that there are before any.

    >>> backoff = Backoff(first=0.5, longest=30.0)
    >>> [backoff.after(attempts) for attempts in (1, 2, 3, 6, 7, 1_000_000)]
    [0.5, 1.0, 2.0, 16.0, 30.0, 30.0]
    """

    first: float
    longest: float

    def after(self, attempts: int) -> float:
        """Seconds to wait after so many attempts in vain, from 1."""
        return min(self.longest, self.first * 2.0 ** min(attempts - 1, _MOST_DOUBLINGS))
