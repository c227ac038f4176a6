"""What work costs beside other work. Ratios only: seconds say something of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable


def cost(work: Callable[[], object], tries: int = 5) -> float:
    """Seconds of a processor, the least of some tries."""

    def once() -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    return min(once() for _ in range(tries))
