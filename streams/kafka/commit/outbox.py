"""Outbox: records and changelog rows that must be acknowledged before an offset is committed.

    flush()  =  take all changes that are due now, in one step without an await; then
                 1. wait until all records that agents posted or sent are acknowledged
                 2. write the new values of the tables, table by table in their order
                 3. write the deletions of the tables, in the reverse order
                 4. write the offset before which the source topic's records are in the tables
                 5. write these changes and the end of each changelog to the disk, in one batch for each partition

So a row never refers to a missing row: rows of the sessions table refer to rows of the exchanges table, so exchanges
are written first and deleted last. If a step fails, the changes go back to their tables, nothing is committed, and
the next attempt sends the changes again. If the broker refuses a record for good, `when_refused` is called instead,
because sending the record again would block all records behind it forever.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from aiokafka.errors import KafkaError

from schemas.errors import DataDirError
from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.commit.marks import END, Progress
from streams.kafka.commit.positions import Positions
from streams.kafka.commit.sends import REFUSED_FOR_GOOD, Sends, Sent, passed_over
from tables.windows.rows import Change
from tables.windows.window_stores import Begun, WindowStores

log = logging.getLogger(__name__)


class StateStore(Protocol):
    """The rows of a table in this worker's partitions, and the changes that its changelog does not have yet."""

    def restore(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Add rows read back from the changelog, oldest first."""

    def own(self, partitions: frozenset[int]) -> None:
        """Set this worker's partitions, and drop the rows of all other partitions."""

    def drain(self) -> list[Change]:
        """Return all changes since the last call, one for each key. The caller must write or `requeue` them."""

    def requeue(self, changes: Sequence[Change]) -> None:
        """Add changes again that could not be written. A newer change of the same key has priority."""

    def written(self, changes: Sequence[Change]) -> None:
        """Record these changes as acknowledged by the broker. They come from the last call of `drain()`."""

    def has_changes(self, partition: int) -> bool:
        """Return True if any row of the partition was changed since the last `drain`."""

    def undo(self) -> None:
        """Set the rows back to their values at the last `drain`, and forget all changes since then."""


class _Table(NamedTuple):
    changelog: str
    store: StateStore
    positions: Positions
    progress: Progress | None


class Outbox(Sends):
    """Sends the records of agents and the changes of tables. It is flushed before each commit.

    If a right is missing, `on_not_allowed` is called: all attempts would fail until an operator grants the right.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.on_not_allowed: Callable[[KafkaError], None] | None = None
        #: The stores of the tables' rows on disk, if there are any, and the callback for a failed write to the disk.
        self.stores: WindowStores | None = None
        self.on_disk_failure: Callable[[DataDirError], None] | None = None
        self._monotonic = monotonic
        self._flushing_since: float | None = None
        #: The reason why the last flush failed; empty if it succeeded.
        self.failure = ""
        self._tables: list[_Table] = []

    def add_table(
        self,
        changelog_topic: str,
        store: StateStore,
        positions: Positions | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Add a table, whose changes `flush` writes to its changelog. Tables are written in the order of these calls.

        `positions` gets the offsets of the written rows. The offsets of `progress` are written after the rows of
        all tables.
        """
        self._tables.append(_Table(changelog_topic, store, positions or Positions(), progress))

    async def mark(self, changelogs: Mapping[str, Iterable[int]]) -> dict[tuple[str, int], int]:
        """Write an end mark to each of these partitions. Return the marks' offsets, by (changelog, partition).

        In a changelog, each record that the broker has acknowledged to any worker before this call lies before the
        mark. Raises `KafkaError`.
        """
        assert self._producer is not None, "the producer has not started"
        async with self._flushing():  # wait for a running flush: its rows must lie before the marks
            sent = {}
            for changelog, partitions in changelogs.items():
                self._flushing_to = changelog
                for partition in partitions:
                    batch = self._producer.create_batch()
                    batch.append(key=END, value=None, timestamp=None)
                    batch.close()
                    future = await self._producer.send_batch(batch, changelog, partition=partition)
                    future.add_done_callback(passed_over)  # the loop below raises the first error
                    sent[changelog, partition] = future
            offsets = {}
            for (changelog, partition), future in sent.items():
                self._flushing_to = changelog
                offsets[changelog, partition] = (await asyncio.shield(future)).offset
            for table in self._tables:
                for (changelog, partition), offset in offsets.items():
                    if changelog == table.changelog:
                        table.positions.marked(partition, offset)
            return offsets

    def waits(self) -> float:
        """Return the seconds that the running `flush` or `mark` has waited for the broker; 0 if none is running."""
        return 0.0 if self._flushing_since is None else self._monotonic() - self._flushing_since

    @property
    def waits_for(self) -> str:
        """The topic that the running `flush` or `mark` waits for; an empty text if none is running."""
        return "" if self._flushing_since is None else self._flushing_to

    async def flush(self) -> bool:
        """Write all due records and changes to Kafka, and the changes to the disk. Return True if all were written.

        Return False after a failure, or if there is no producer yet. A failure is logged, and the next call tries
        again.
        """
        if self._producer is None:
            return False
        async with self._flushing():
            return await self._flush()

    @contextlib.asynccontextmanager
    async def _flushing(self) -> AsyncIterator[None]:
        """Hold the lock of the outbox, and note the time at which it was acquired."""
        assert self._lock is not None
        async with self._lock:
            self._flushing_since = self._monotonic()
            try:
                yield
            finally:
                self._flushing_since = None

    async def _flush(self) -> bool:
        sent: list[Sent] = []
        begun = {} if self.stores is None else self.stores.begin()
        taken = [(table, table.store.drain()) for table in self._tables]
        read = [(table, table.progress, table.progress.due()) for table in self._tables if table.progress is not None]
        for table, changes in taken:
            due = [change for other, _, due in read if other is table for change in due]
            table.positions.begin(change.partition for change in (*changes, *due))
        try:
            await self.deliver()
            sent, self._pending = self._pending, []
            await self._acknowledged(sent)
            for table, changes in taken:
                await self._write(table, [change for change in changes if change.value is not None])
            for table, changes in reversed(taken):
                await self._write(table, [change for change in changes if change.value is None])
            for table, progress, due in read:
                await self._write(table, due)
                progress.wrote(due)
            for table, _ in taken:
                table.positions.end()
            # Nothing is awaited from here on, so the disk gets exactly the rows that the changelogs have.
        except BaseException as exc:
            for table, changes in taken:
                table.store.requeue(changes)
                table.positions.fail()
            self._pending[:0] = sent  # records stay pending until they are acknowledged
            if not isinstance(exc, Exception):
                raise
            if isinstance(exc, NOT_ALLOWED) and self.on_not_allowed is not None:
                self.on_not_allowed(exc)
                return False
            self.failure = f"{self._flushing_to} does not accept the due records ({type(exc).__name__}: {exc})"
            log.error("nothing committed: %s", self.failure)
            await self._send_again()
            return False
        self.failure = ""
        return self._keep(taken, begun)

    def _keep(self, taken: Sequence[tuple[_Table, Sequence[Change]]], begun: Mapping[int, Begun]) -> bool:
        """Write the acknowledged changes to the stores on disk, if the worker has any. Return False on an error."""
        try:
            for table, changes in taken:
                table.store.written(changes)
            if self.stores is not None:
                changed = {change.partition for _, changes in taken for change in changes}
                for partition in changed | {partition for partition, one in begun.items() if one.erase}:
                    self.stores.commit(partition, self.ends(partition), begun)
        except DataDirError as exc:
            self.failure = str(exc)
            if self.on_disk_failure is None:
                raise
            self.on_disk_failure(exc)
            return False
        return True

    def ends(self, partition: int) -> dict[str, tuple[int | None, int, int]]:
        """Return (`offset`, `rows`, `read`) by changelog, the argument of `WindowStores.commit`.

        Memory holds all records of the changelog before `offset`; None if this is unknown. `rows` is the number of
        rows. The rows include all records of the source topic before `read`; 0 if this is unknown.
        """
        return {
            table.changelog: (
                table.positions.known(partition),
                table.positions.rows[partition],
                0 if table.progress is None else table.progress.written(partition),
            )
            for table in self._tables
        }

    async def _write(self, table: _Table, changes: Sequence[Change]) -> None:
        """Write one record for each change.

        The records are packed into batches. This costs a tenth of sending them one by one.
        """
        assert self._producer is not None
        topic = self._flushing_to = table.changelog
        by_partition: dict[int, list[Change]] = {}
        for change in changes:
            by_partition.setdefault(change.partition, []).append(change)
        written: list[tuple[int, Sequence[Change], asyncio.Future[Any]]] = []
        for partition, rows in by_partition.items():
            batch, first = self._producer.create_batch(), 0
            for number, row in enumerate(rows):
                if batch.append(key=row.key, value=row.value, timestamp=None) is None:
                    future = await self._producer.send_batch(batch, topic, partition=partition)
                    written.append((partition, rows[first:number], future))
                    batch, first = self._producer.create_batch(), number
                    batch.append(key=row.key, value=row.value, timestamp=None)  # a batch's first row always fits
            batch.close()
            future = await self._producer.send_batch(batch, topic, partition=partition)
            written.append((partition, rows[first:], future))
        for partition, together, future in written:
            try:
                taken_at = await asyncio.shield(future)
            except REFUSED_FOR_GOOD as exc:
                if self.when_refused is None:
                    raise
                table.positions.left_out(partition)
                await self._write_apart(table, together, exc)
            else:
                table.positions.wrote(partition, taken_at.offset, len(together))

    async def _write_apart(self, table: _Table, rows: Sequence[Change], error: KafkaError) -> None:
        """Write each row of a refused batch alone, so that only the row that causes the refusal is left out."""
        if len(rows) > 1:
            for row in rows:
                await self._write(table, [row])
            return
        (row,) = rows
        self._refuse((table.changelog, row.value, row.key, row.partition, None, ()), error)
