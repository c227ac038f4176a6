"""Lets callers wait until a record of a partition is processed.

If no caller waits, this costs only one check for each processed batch.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count

Partition = tuple[str, int]


class Waiters:
    """The futures of waiting callers, by partition. The caller with the smallest offset is first.

    if waiters:
        waiters.reached(("siltstone.long-term", 3), 18)     # callers that wait for offset 17 or less go on
    """

    def __init__(self) -> None:
        self._waiting: dict[Partition, list[tuple[int, int, asyncio.Future[bool]]]] = {}
        self._number = count()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return sum(not future.done() for queue in self._waiting.values() for _, _, future in queue)

    async def until(self, partition: Partition, offset: int) -> bool:
        """Wait until the record at this offset is processed, and return True; False if partitions move meanwhile."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        entry = offset, next(self._number), future
        heappush(self._waiting.setdefault(partition, []), entry)
        try:
            return await future
        finally:
            if future.cancelled():  # the waiting caller was cancelled
                self._leave(partition, entry)

    def reached(self, partition: Partition, position: int) -> None:
        """Wake the callers that wait for records before offset `position`: all these records are processed."""
        queue = self._waiting.get(partition)
        while queue and queue[0][0] < position:
            _, _, future = heappop(queue)
            if not future.done():
                future.set_result(True)
        if queue is not None and not queue:
            del self._waiting[partition]

    def moved(self) -> None:
        """End all waits with False. Call this if partitions have moved, because their progress is unknown then."""
        waiting, self._waiting = self._waiting, {}
        for queue in waiting.values():
            for _, _, future in queue:
                if not future.done():
                    future.set_result(False)

    def _leave(self, partition: Partition, entry: tuple[int, int, asyncio.Future[bool]]) -> None:
        queue = self._waiting.get(partition)
        if queue is None or entry not in queue:
            return
        queue.remove(entry)
        if queue:
            queue.sort()  # a sorted list is a heap
        else:
            del self._waiting[partition]
