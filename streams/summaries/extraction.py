"""The code that makes summaries inside the process of an `ExtractionProcess`."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import NamedTuple

from streams.summaries.rules.drafting import Draft, Order, drafted
from streams.summaries.rules.kinds import ready


class Failed(NamedTuple):
    """A summary could not be made. Only the exception's type is kept, because its text may quote messages."""

    exception: str


def made(orders: Sequence[Order], seconds: float) -> list[Draft | Failed]:
    """Make a summary for each order. If one takes more than `seconds` of CPU time, the process ends (SIGPROF).

    The time that the first one takes to read the encoder and the weights does not count.
    """
    return [_made_within(seconds, order) for order in orders]


def _made_within(seconds: float, order: Order) -> Draft | Failed:
    try:
        ready()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        return drafted(order)
    except Exception as exc:
        return Failed(type(exc).__name__)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
