"""Group commit: all records that wait to be written to a partition's shard are written together, in one transaction.

A transaction costs about the same for one event as for a hundred. If a partition is busy, its groups are larger, so
each event costs less. Several partitions can write at the same time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

log = logging.getLogger(__name__)

#: Maximum number of events in one transaction. Searches must wait until a transaction ends, and a larger one would
#: hardly cost less per event.
EVENTS_A_TRANSACTION: Final = 1_024
#: Maximum number of records that wait for a partition's writer. If more are waiting, `join` blocks, so that no more
#: records of the partition are read.
MOST_WAITING: Final = 4 * EVENTS_A_TRANSACTION


@dataclass(eq=False, slots=True)
class _Fetched:
    """A fetched batch. `left` are its records that are in no group yet. `written` is done when all are written."""

    left: Sequence[Any]
    written: asyncio.Future[None]


class GroupWriter:
    """Writes one partition's records, in order, until the partition is revoked.

    `write` is called with the records of one group, at most `most`. `ready` is awaited before a group is formed, so
    records that arrive during this wait are part of the group.

        writer = GroupWriter(write)
        written = await writer.join(records)    # returns when there is room for more
        await written                           # all of them are written

    If a group cannot be written, writing stops and all unwritten batches fail. Then the log must be read again from
    the first unwritten record.
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
        """Queue a fetched batch. The returned future is done when the whole batch is written.

        If the partition is revoked before, the future is cancelled. If a write fails, the future raises its error.
        This method waits while more than `MOST_WAITING` records are waiting.
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
        """Stop writing, and cancel the batches that are not yet written, so that none of them counts as processed.

        If a transaction has begun, the shard's thread finishes it, but its records are not acknowledged. When they
        are read again, the shard knows that their events are applied.
        """
        for fetched in self._end():
            fetched.written.cancel()
        if self._task is not None:
            self._task.cancel()

    async def stopped(self) -> None:
        """Wait until the current write has ended. Call this after `revoke`."""
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
            self._fail(RuntimeError("a write was cancelled although its partition was not revoked"))
            raise
        except Exception as exc:
            self._fail(exc)

    def _take(self) -> list[Any]:
        """Take the records of the next group, and keep their batches in `_group`.

        If a batch does not fit into the group, only its first records are taken.
        """
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
        """Let all unwritten batches fail with the error `exc`. After a revocation there are no unwritten batches."""
        for fetched in self._end():
            log.info("a fetched batch was not written: %s: %s", type(exc).__name__, exc)
            fetched.written.set_exception(exc)
            fetched.written.exception()  # no caller may await the future, so mark its exception as retrieved

    def _end(self) -> list[_Fetched]:
        """Stop writing for good. Return the batches that are not yet written."""
        left = [fetched for fetched in (*self._group, *self._waiting) if not fetched.written.done()]
        self._over, self._group = True, []
        self._waiting.clear()
        self._taken.set()
        return list(dict.fromkeys(left))
