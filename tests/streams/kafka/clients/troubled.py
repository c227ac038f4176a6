"""What an extraction's process is made to do in tests; it imports this, and nothing that it would not load anyway."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from streams.summaries import extraction
from streams.summaries.extraction import Failed, made
from streams.summaries.rules.drafting import Draft, Order, drafted


def made_in_trouble(orders: Sequence[Order], seconds: float) -> list[Draft | Failed]:
    """In the process: does what a word in an order says, and else its work."""
    setattr(extraction, "drafted", _in_trouble)  # noqa: B010 - it is another module's
    return made(orders, seconds)


def _in_trouble(order: Order) -> Draft:
    said = b"".join(order.requests)
    if b"die now" in said:
        os._exit(3)
    while b"go on for ever" in said:
        pass
    if b"print it" in said:
        sys.stdout.write("printed\n")
    if b"divide by zero" in said:
        raise ZeroDivisionError
    return drafted(order)
