"""What must be acknowledged by the broker before an offset is committed: records sent, and tables' changes.

    flush()  =  take everything that is due now, in one step without waiting
                 1. all records that agents posted or sent are acknowledged
                 2. the tables' new values, table by table in their order
                 3. the tables' deletions, in the reverse order
                 4. up to where the records that changed them were read
                 5. all of that to the disk, in one batch a partition, with where the changelogs end in it

A value thus never points to one that is not there: the sessions' table refers to the exchanges' table, so
exchanges are written first and deleted last. When any of it fails, the changes go back, nothing is committed,
and the next attempt sends them again. What the broker refuses for good is no failure of that kind: trying again
would hold up everything behind it for ever, so it goes to `when_refused`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from aiokafka.errors import (
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
    UnsupportedForMessageFormatError,
)

from schemas.errors import DataDirError
from schemas.topics import Headers
from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.commit.marks import END, Progress
from streams.kafka.commit.positions import Positions
from tables.windows.rows import Change
from tables.windows.window_stores import Begun, WindowStores

log = logging.getLogger(__name__)


#: What a broker says of a record that it will never take, however often it is sent.
REFUSED_FOR_GOOD: Final = (
    InvalidTimestampError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
    UnsupportedForMessageFormatError,
)


class StateStore(Protocol):
    """Keeps a table's rows for the partitions that this worker owns; knows what its changelog has not yet."""

    def restore(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Rows read back from the changelog, oldest first."""

    def own(self, partitions: frozenset[int]) -> None:
        """The partitions of this worker from now on: rows of all others are dropped."""

    def drain(self) -> list[Change]:
        """Everything changed since the last call, each key once; the caller writes it or gives it back."""

    def requeue(self, changes: Sequence[Change]) -> None:
        """Changes that could not be written; newer ones of the same keys win."""

    def written(self, changes: Sequence[Change]) -> None:
        """The changelog has taken these, which were drained last."""

    def has_changes(self, partition: int) -> bool:
        """Whether any of its rows was changed since changes were last taken."""

    def undo(self) -> None:
        """Rows are as they were when changes were last taken; nothing is changed."""


class Producer(Protocol):
    """The part of `aiokafka.AIOKafkaProducer` that the outbox uses. What futures bring has an `offset`."""

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int | None = None,
        *,
        headers: Headers,
    ) -> asyncio.Future[Any]: ...

    def create_batch(self) -> Any: ...

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> asyncio.Future[Any]: ...


#: Topic, value, key, partition, timestamp (epoch ms), headers.
_Arguments = tuple[str, bytes | None, bytes | None, int | None, int | None, Headers]


class RefusedRecord(NamedTuple):
    """A record, or a table's row, that the broker refuses for good, and what it says of it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    error: KafkaError


class _Table(NamedTuple):
    changelog: str
    store: StateStore
    positions: Positions
    progress: Progress | None


class _Sent(NamedTuple):
    arguments: _Arguments
    acknowledged: asyncio.Future[Any]


class Outbox:
    """Sends for the agents, and is flushed before each commit.

    `when_refused` gets each record that the broker refuses for good, and may post another in its place; without
    `when_refused` the record stays due. `on_not_allowed` is told that a right is missing: sending again is useless
    until an operator grants it.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.when_refused: Callable[[RefusedRecord], None] | None = None
        self.on_not_allowed: Callable[[KafkaError], None] | None = None
        #: Where tables' rows are on the disk, and what is told that it takes none.
        self.stores: WindowStores | None = None
        self.on_disk_failure: Callable[[DataDirError], None] | None = None
        self._monotonic = monotonic
        self._flushing_since: float | None = None
        self._flushing_to = ""
        #: Why the last attempt failed, with the topic; empty where it did not.
        self.failure = ""
        self._producer: Producer | None = None
        self._posted: deque[_Arguments] = deque()
        self._pending: list[_Sent] = []
        self._tables: list[_Table] = []
        self._lock: asyncio.Lock | None = None
        self._delivery: asyncio.Lock | None = None

    def connect(self, producer: Producer) -> None:
        """Use this producer, which has started."""
        if producer is not self._producer:
            self._producer, self._lock, self._delivery = producer, asyncio.Lock(), asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether there is a producer to send with."""
        return self._producer is not None

    def add_table(
        self,
        changelog_topic: str,
        store: StateStore,
        positions: Positions | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Write this store's changes; tables are written in the order in which they were added.

        `positions` are told where its rows came to lie; `progress` is written behind the rows of all tables.
        """
        self._tables.append(_Table(changelog_topic, store, positions or Positions(), progress))

    async def mark(self, changelogs: Mapping[str, Iterable[int]]) -> dict[tuple[str, int], int]:
        """Write a mark to these partitions of the tables' changelogs; where each lies. Raises `KafkaError`.

        All that anybody had written before, and was acknowledged for, lies before it.
        """
        assert self._producer is not None, "the producer has not started"
        async with self._flushing():  # rows of ours that are on their way come first
            sent = {}
            for changelog, partitions in changelogs.items():
                self._flushing_to = changelog
                for partition in partitions:
                    batch = self._producer.create_batch()
                    batch.append(key=END, value=None, timestamp=None)
                    batch.close()
                    future = await self._producer.send_batch(batch, changelog, partition=partition)
                    future.add_done_callback(_passed_over)  # the first one that fails is raised
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

    def post(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Send soon, and before any change that tables hold now is written; at `timestamp` (epoch ms), or now.

        What follows from a change is posted in the same step as the change: with an await in between, the change
        could be written, the worker die, and what follows from it never be sent.
        """
        self._posted.append((topic, value, key, partition, timestamp, headers))

    async def deliver(self) -> None:
        """Send what is posted, in its order."""
        assert self._producer is not None, "the producer has not started"
        assert self._delivery is not None
        async with self._delivery:
            while self._posted:
                arguments = self._posted[0]  # queued until it is sent: a concurrent flush must not miss it
                topic, value, key, partition, timestamp, headers = arguments
                self._flushing_to = topic
                try:
                    acknowledged = await self._producer.send(topic, value, key, partition, timestamp, headers=headers)
                except REFUSED_FOR_GOOD as exc:
                    self._refuse(arguments, exc)
                else:
                    self._pending.append(_Sent(arguments, acknowledged))
                self._posted.popleft()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
    ) -> asyncio.Future[Any]:
        """Send now; the offset of what caused it is not committed before this is acknowledged."""
        assert self._producer is not None, "the producer has not started"
        acknowledged = await self._producer.send(topic, value, key, partition, headers=headers)
        self._pending.append(_Sent((topic, value, key, partition, None, headers), acknowledged))
        return acknowledged

    async def produce(
        self, topic: str, value: bytes | None, *, key: bytes, headers: Headers = ()
    ) -> asyncio.Future[Any]:
        """Send for a caller who waits for the acknowledgement, and deals with a refusal: no commit waits for it."""
        assert self._producer is not None, "the producer has not started"
        return await self._producer.send(topic, value, key, None, headers=headers)

    def abandon(self) -> None:
        """Stop tracking unacknowledged sends; they are sent again after a restart."""
        for sent in self._pending:
            sent.acknowledged.add_done_callback(_passed_over)

    def waits(self) -> float:
        """For how many seconds the attempt that is under way has waited for the broker; 0 where there is none."""
        return 0.0 if self._flushing_since is None else self._monotonic() - self._flushing_since

    @property
    def waits_for(self) -> str:
        """The topic that the attempt which is under way waits for; empty where there is none."""
        return "" if self._flushing_since is None else self._flushing_to

    async def flush(self) -> bool:
        """Whether all that was due is acknowledged. A failure is logged; the next call tries again."""
        if self._producer is None:
            return False
        async with self._flushing():
            return await self._flush()

    @contextlib.asynccontextmanager
    async def _flushing(self) -> AsyncIterator[None]:
        """One at a time."""
        assert self._lock is not None
        async with self._lock:
            self._flushing_since = self._monotonic()
            try:
                yield
            finally:
                self._flushing_since = None

    async def _flush(self) -> bool:
        sent: list[_Sent] = []
        begun = {} if self.stores is None else self.stores.begin()
        taken = [(table, table.store.drain()) for table in self._tables]
        read = [(table, table.progress, table.progress.due()) for table in self._tables if table.progress is not None]
        for table, changes in taken:
            due = [change for other, _, due in read if other is table for change in due]
            table.positions.begin(change.partition for change in (*changes, *due))
        try:
            await self.deliver()
            sent, self._pending = self._pending, []
            for record in sent:
                self._flushing_to = record.arguments[0]
                if not record.acknowledged.done():  # most of them are, and a shield is not free
                    await asyncio.shield(record.acknowledged)
                record.acknowledged.result()
            for table, changes in taken:
                await self._write(table, [change for change in changes if change.value is not None])
            for table, changes in reversed(taken):
                await self._write(table, [change for change in changes if change.value is None])
            for table, progress, due in read:
                await self._write(table, due)
                progress.wrote(due)
            for table, _ in taken:
                table.positions.end()
            # Nothing is awaited from here on: what the changelogs have and what the disk gets are the same.
        except BaseException as exc:
            for table, changes in taken:
                table.store.requeue(changes)
                table.positions.fail()
            self._pending[:0] = sent  # due until they are acknowledged, even after failed attempts
            if not isinstance(exc, Exception):
                raise
            if isinstance(exc, NOT_ALLOWED) and self.on_not_allowed is not None:
                self.on_not_allowed(exc)
                return False
            self.failure = f"{self._flushing_to} does not take what is due ({type(exc).__name__}: {exc})"
            log.error("nothing committed: %s", self.failure)
            await self._send_again()
            return False
        self.failure = ""
        return self._keep(taken, begun)

    def _keep(self, taken: Sequence[tuple[_Table, Sequence[Change]]], begun: Mapping[int, Begun]) -> bool:
        """Whether the disk, where there is one, has taken what the changelogs have."""
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
        """Of each changelog: up to where memory has it, where that is known, its rows, and its records' offset."""
        return {
            table.changelog: (
                table.positions.known(partition),
                table.positions.rows[partition],
                0 if table.progress is None else table.progress.written(partition),
            )
            for table in self._tables
        }

    async def _send_again(self) -> None:
        """Records whose sending failed are sent once more; the next attempt waits for them.

        What was refused for good may have been refused for a record that was sent in one batch with it: it is sent
        alone, and when that is refused, too, it is the one.
        """
        pending, self._pending = deque(self._pending), []
        due: list[_Sent] = []
        try:
            while pending:
                again = await self._sent_again(pending[0])
                pending.popleft()
                due += again
        except Exception as exc:
            topic = pending[0].arguments[0]
            log.error("%s: a record could not be sent again (%s: %s)", topic, type(exc).__name__, exc)
        finally:
            self._pending[:0] = [*due, *pending]

    async def _sent_again(self, sent: _Sent) -> list[_Sent]:
        """What is due in its place: the record itself, as long as it is not refused for good."""
        assert self._producer is not None
        failed = sent.acknowledged.exception() if sent.acknowledged.done() else None
        if failed is None:
            return [sent]
        topic, value, key, partition, timestamp, headers = sent.arguments
        for_good = isinstance(failed, REFUSED_FOR_GOOD) and self.when_refused is not None
        try:
            again = await self._producer.send(topic, value, key, partition, timestamp, headers=headers)
            if for_good:
                await asyncio.shield(again)
        except REFUSED_FOR_GOOD as exc:
            if not for_good:
                raise
            self._refuse(sent.arguments, exc)
            return []
        return [_Sent(sent.arguments, again)]

    def _refuse(self, arguments: _Arguments, error: KafkaError) -> None:
        topic, value, key, _, _, headers = arguments
        if self.when_refused is None:
            raise error
        self.when_refused(RefusedRecord(topic, key, value, headers, error))

    async def _write(self, table: _Table, changes: Sequence[Change]) -> None:
        """One record a key, packed into whole batches: a tenth of the cost of sending them one by one."""
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
                    batch.append(key=row.key, value=row.value, timestamp=None)  # the first one always fits
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
        """Rows whose batch was refused for good: one at a time, so that only the one that is meant is left out."""
        if len(rows) > 1:
            for row in rows:
                await self._write(table, [row])
            return
        (row,) = rows
        self._refuse((table.changelog, row.value, row.key, row.partition, None, ()), error)


def _passed_over(acknowledged: asyncio.Future[Any]) -> None:
    """Its exception counts as retrieved: asyncio would log each one, hundreds of lines for one cause."""
    if not acknowledged.cancelled():
        acknowledged.exception()
