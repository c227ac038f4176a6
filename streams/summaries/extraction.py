"""Makes summaries in the process of an `ExtractionProcess`."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import NamedTuple

from streams.summaries.rules.drafting import Draft, Order, drafted


class Failed(NamedTuple):
    """A summary could not be made; the exception's type alone, for its text may quote what was said."""

    exception: str


def made(orders: Sequence[Order], seconds: float) -> list[Draft | Failed]:
    """An order that takes more than `seconds` of CPU time ends the process (SIGPROF), wherever it is stuck."""
    return [_made_within(seconds, order) for order in orders]


def _made_within(seconds: float, order: Order) -> Draft | Failed:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return drafted(order)
    except Exception as exc:
        return Failed(type(exc).__name__)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
