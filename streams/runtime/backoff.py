"""Backoff: the pauses between attempts."""

from __future__ import annotations

from dataclasses import dataclass

#: The maximum number of times that the first pause is doubled. More doublings would exceed every `longest` pause in
#: use, and 1,024 of them would overflow a float.
_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double after each failed attempt: from `first` seconds, before the second attempt, to `longest`.

    >>> backoff = Backoff(first=0.5, longest=30.0)
    >>> [backoff.after(attempts) for attempts in (1, 2, 3, 6, 7, 1_000_000)]
    [0.5, 1.0, 2.0, 16.0, 30.0, 30.0]
    """

    first: float
    longest: float

    def after(self, attempts: int) -> float:
        """Return the seconds to wait after this number of failed attempts (at least 1)."""
        return min(self.longest, self.first * 2.0 ** min(attempts - 1, _MOST_DOUBLINGS))
