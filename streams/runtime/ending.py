"""Ending tasks, even if a cancellation is lost.

Libraries lose one that arrives while they await a task of their own that they have cancelled (`suppress` in
aiokafka's `close`, `_default_stop_children` of mode's services): they go on as if it had been meant for that task.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection
from itertools import chain, repeat
from typing import Any, Final

#: After the first cancellation: so long the clean-up may take that it begins, such as a consumer's that is stopped.
FIRST_SECONDS: Final = 3.0
#: Between two further ones.
AGAIN_SECONDS: Final = 0.5


async def ended(
    tasks: Collection[asyncio.Task[Any]], seconds: float | None = None, *, first: float = FIRST_SECONDS
) -> set[asyncio.Task[Any]]:
    """Cancel the tasks, again and again, until all of them have ended; those that have not after so many seconds."""
    left = {task for task in tasks if not task.done()}
    loop = asyncio.get_running_loop()
    until = math.inf if seconds is None else loop.time() + seconds
    pauses = chain((first,), repeat(AGAIN_SECONDS))
    while left and (rest := until - loop.time()) > 0:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=min(next(pauses), rest))
    return left
