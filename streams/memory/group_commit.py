"""Group commit: everything that waits for a partition is written together, one group after the other.

A transaction costs about the same for one event as for a hundred, so the busier a partition is, the larger its groups
are and the less an event costs. Partitions write at the same time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

log = logging.getLogger(__name__)

#: Events in one transaction. Searches wait behind it, and more is hardly faster.
EVENTS_A_TRANSACTION: Final = 1_024
#: Records that may wait in front of a partition's writer before its topic is read no further.
MOST_WAITING: Final = 4 * EVENTS_A_TRANSACTION


@dataclass(eq=False, slots=True)
class _Fetched:
    """A fetched batch: what of it still waits, and the future of all of it."""

    left: Sequence[Any]
    written: asyncio.Future[None]


class GroupWriter:
    """Writes one partition's records, in their order, until the partition is revoked.

    `write` is given the records of one group, at most `most`; `ready` is awaited before a group is taken, so that
    what comes meanwhile goes with it.

        writer = GroupWriter(write)
        written = await writer.join(records)    # returns when there is room for more
        await written                           # all of them are in

    A group that cannot be written fails all batches that are not in yet, and nothing more is written: the log is
    read again from the first record that is not in.
    """

    def __init__(
        self,
        write: Callable[[Sequence[Any]], Awaitable[None]],
        ready: Callable[[], Awaitable[None]] | None = None,
        most: int = EVENTS_A_TRANSACTION,
    ) -> None:
        self._write, self._ready, self._most = write, ready, most
        self._waiting: deque[_Fetched] = deque()
        self._group: list[_Fetched] = []
        self._task: asyncio.Task[None] | None = None
        self._taken = asyncio.Event()
        self._over = False

    async def join(self, records: Sequence[Any]) -> asyncio.Future[None]:
        """Have a fetched batch written; the future is done when all of it is.

        It is cancelled where the partition is revoked before, and fails with what kept the records from being in.
        """
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._over:
            written.cancel()
            return written
        self._waiting.append(_Fetched(records, written))
        if self._task is None:
            self._task = asyncio.create_task(self._write_groups())
        while self._count() > MOST_WAITING and not self._over:
            self._taken.clear()
            await self._taken.wait()
        return written

    def revoke(self) -> None:
        """Write no more, and let nothing that is not yet in count as processed.

        A transaction that has begun is finished by the shard's thread, unacknowledged; its events will be in already
        when they are read again.
        """
        for fetched in self._end():
            fetched.written.cancel()
        if self._task is not None:
            self._task.cancel()

    async def stopped(self) -> None:
        """Wait until nothing is being written any more, after `revoke`."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _write_groups(self) -> None:
        try:
            while self._waiting:
                if self._ready is not None:
                    await self._ready()
                await self._write(self._take())
                for fetched in self._group:
                    if not fetched.left and not fetched.written.done():
                        fetched.written.set_result(None)
                self._group = []
            self._task = None
        except asyncio.CancelledError:
            self._fail(RuntimeError("a write was cancelled, and its partition was not revoked"))
            raise
        except Exception as exc:
            self._fail(exc)

    def _take(self) -> list[Any]:
        """The records of the next group; `_group` are the batches that they are of. A larger batch is cut."""
        records: list[Any] = []
        while self._waiting and len(records) < self._most:
            first, room = self._waiting[0], self._most - len(records)
            records += first.left[:room]
            first.left = first.left[room:]
            self._group.append(first)
            if not first.left:
                self._waiting.popleft()
        self._taken.set()
        return records

    def _count(self) -> int:
        return sum(len(fetched.left) for fetched in self._waiting)

    def _fail(self, exc: Exception) -> None:
        """Nothing happens where the partition was revoked before."""
        for fetched in self._end():
            log.info("a fetched batch was not written: %s: %s", type(exc).__name__, exc)
            fetched.written.set_exception(exc)
            fetched.written.exception()  # marks it as retrieved: during a revocation no caller awaits it

    def _end(self) -> list[_Fetched]:
        """Write no more; the batches that are not in yet."""
        left = [fetched for fetched in (*self._group, *self._waiting) if not fetched.written.done()]
        self._over, self._group = True, []
        self._waiting.clear()
        self._taken.set()
        return list(dict.fromkeys(left))
