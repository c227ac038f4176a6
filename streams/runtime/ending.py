"""Ending tasks, even if a cancellation is lost.

Libraries lose a cancellation that arrives while they await a task that they have cancelled themselves (`suppress` in
aiokafka's `close`, `_default_stop_children` of mode's services): they take it for that task's, and go on.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection
from itertools import chain, repeat
from typing import Any, Final

#: The pause after the first cancellation: the clean-up that it starts, such as stopping a consumer, may take so long.
FIRST_SECONDS: Final = 3.0
#: The pause between further cancellations.
AGAIN_SECONDS: Final = 0.5


async def ended(
    tasks: Collection[asyncio.Task[Any]], seconds: float | None = None, *, first: float = FIRST_SECONDS
) -> set[asyncio.Task[Any]]:
    """Cancel the tasks repeatedly until all have ended. Return those that have not ended after `seconds`."""
    left = {task for task in tasks if not task.done()}
    loop = asyncio.get_running_loop()
    until = math.inf if seconds is None else loop.time() + seconds
    pauses = chain((first,), repeat(AGAIN_SECONDS))
    while left and (rest := until - loop.time()) > 0:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=min(next(pauses), rest))
    return left
