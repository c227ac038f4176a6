"""Decides whether a call is sent again, after which pause, and how often.

After a failed attempt, a write is sent again only if a second attempt changes nothing: the client gave the write an
id before the first attempt, or the write sets a value. All other writes are sent again only if the attempt got no
connection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tenacity import RetryCallState, retry_if_exception, stop_after_attempt, stop_any, stop_before_delay
from tenacity.wait import wait_base, wait_random_exponential

from siltstone_client.errors import Unavailable, Unreachable


class Again(Enum):
    """The condition under which a call may be sent again."""

    WHENEVER = "it reads, has its own id, or sets a value"
    UNSENT = "nothing of it has arrived"


@dataclass(frozen=True, slots=True)
class Retries:
    """The limits for the attempts of one call.

    There are at most `attempts`, and none begins later than `seconds` after the first. The pauses are random: the
    first is at most `first` seconds, and this limit doubles with each pause, up to `longest`. No pause is shorter
    than the worker's `Retry-After`.
    """

    attempts: int = 4
    seconds: float = 30.0
    first: float = 0.2
    longest: float = 5.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.seconds, self.first, self.longest) < 0:
            raise ValueError("retries: attempts must be at least 1; seconds, first and longest must not be negative")

    def options(self, again: Again) -> dict[str, Any]:
        """The options of tenacity's `Retrying`."""
        return {
            "stop": stop_any(stop_after_attempt(self.attempts), stop_before_delay(self.seconds)),
            "wait": _Pause(self),
            "retry": retry_if_exception(_passing(again)),
            "reraise": True,
        }


class _Pause(wait_base):
    """Random pauses between attempts, which grow and are never shorter than the worker's `Retry-After`.

    With equal pauses, all clients would return at the same moment after a worker was away.
    """

    def __init__(self, retries: Retries) -> None:
        self._backing_off = wait_random_exponential(multiplier=retries.first, max=retries.longest)

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome and retry_state.outcome.exception()
        asked_for = error.retry_after if isinstance(error, Unavailable) else None
        return max(asked_for or 0.0, self._backing_off(retry_state))


def _passing(again: Again) -> Callable[[BaseException], bool]:
    def passing(error: BaseException) -> bool:
        match error:
            case Unreachable():
                return again is Again.WHENEVER or not error.sent
            case Unavailable():
                # A worker's 503 without `Retry-After` lasts until an operator repairs the worker.
                return again is Again.WHENEVER and (error.status != 503 or error.retry_after is not None)
            case _:
                return False

    return passing
