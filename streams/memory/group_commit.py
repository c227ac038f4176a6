"""Group commit: records that wait for a partition are written together, one group after the other.

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

#: Events in one transaction. Searches wait for it, and a larger one is hardly faster.
EVENTS_A_TRANSACTION: Final = 1_024
#: Records that may wait for a partition's writer; with more, reading of its topic pauses.
MOST_WAITING: Final = 4 * EVENTS_A_TRANSACTION


@dataclass(eq=False, slots=True)
class _Fetched:
    """A fetched batch: its records that still wait, and the future of the whole batch."""

    left: Sequence[Any]
    written: asyncio.Future[None]


class GroupWriter:
    """Writes one partition's records, in order, until the partition is revoked.

    `write` gets the records of one group, at most `most`; `ready` is awaited before a group is taken, so that
    records that arrive meanwhile join it.

        writer = GroupWriter(write)
        written = await writer.join(records)    # returns when there is room for more
        await written                           # all of them are written

    If a group cannot be written, all unwritten batches fail and writing stops: the log is read again from the first
    unwritten record.
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
        """Queue a fetched batch; the returned future is done when all of it is written.

        The future is cancelled if the partition is revoked first, and fails with the error of a failed write.
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
        """Stop writing, and cancel the batches that are not yet written, so that none counts as processed.

        The shard's thread finishes a transaction that has begun, unacknowledged; its events are already applied when
        they are read again.
        """
        for fetched in self._end():
            fetched.written.cancel()
        if self._task is not None:
            self._task.cancel()

    async def stopped(self) -> None:
        """Wait, after `revoke`, until the current write has ended."""
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
        """Take the records of the next group, and keep their batches in `_group`. A larger batch is cut."""
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
        """Fail all unwritten batches; after a revocation there are none."""
        for fetched in self._end():
            log.info("a fetched batch was not written: %s: %s", type(exc).__name__, exc)
            fetched.written.set_exception(exc)
            fetched.written.exception()  # marks it as retrieved: during a revocation no caller awaits it

    def _end(self) -> list[_Fetched]:
        """Stop writing; return the batches that are not yet written."""
        left = [fetched for fetched in (*self._group, *self._waiting) if not fetched.written.done()]
        self._over, self._group = True, []
        self._waiting.clear()
        self._taken.set()
        return list(dict.fromkeys(left))
