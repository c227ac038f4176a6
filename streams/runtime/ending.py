"""Ends tasks, even if a library loses their cancellation.

Some library code cancels an inner task, and then awaits it. If the outer task is cancelled during this await, the
code takes this cancellation for that of the inner task, and goes on. Examples are `suppress` in aiokafka's `close`,
and `_default_stop_children` of mode's services.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection
from itertools import chain, repeat
from typing import Any, Final

#: Seconds between the first cancellation and the second one. The clean-up that the first one starts, such as the stop
#: of a consumer, may take this time.
FIRST_SECONDS: Final = 3.0
#: Seconds between two further cancellations of a task that has not ended.
AGAIN_SECONDS: Final = 0.5


async def ended(
    tasks: Collection[asyncio.Task[Any]], seconds: float | None = None, *, first: float = FIRST_SECONDS
) -> set[asyncio.Task[Any]]:
    """Cancel the tasks repeatedly until all have ended. Return the tasks that have not ended after `seconds`.

    Without `seconds`, there is no time limit. `first` is the pause after the first cancellation, in seconds.
    """
    left = {task for task in tasks if not task.done()}
    loop = asyncio.get_running_loop()
    until = math.inf if seconds is None else loop.time() + seconds
    pauses = chain((first,), repeat(AGAIN_SECONDS))
    while left and (rest := until - loop.time()) > 0:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=min(next(pauses), rest))
    return left
