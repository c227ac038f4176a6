"""What must be acknowledged by the broker before an offset is committed: records sent, and tables' changes.

    settle()  =  take everything that is due now, in one step without waiting
                 1. all records that agents posted or sent are acknowledged
                 2. the tables' new values, table by table in their order
                 3. the tables' deletions, in the reverse order

A value thus never points to one that is not there: the sessions' table refers to the exchanges' table, so
exchanges are written first and deleted last. When any of it fails, the changes go back, nothing is committed,
and the next attempt sends them again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from tables.rows import Change

log = logging.getLogger(__name__)

Headers = Sequence[tuple[str, bytes]]


class Keeper(Protocol):
    """Keeps a table's rows for the partitions that this worker owns; knows what its changelog has not yet."""

    def restore(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Rows read back from the changelog, oldest first."""

    def own(self, partitions: frozenset[int]) -> None:
        """The partitions of this worker from now on: rows of all others are dropped."""

    def take_changes(self) -> list[Change]:
        """Everything changed since the last call, each key once; the caller writes it or gives it back."""

    def give_back(self, changes: Sequence[Change]) -> None:
        """Changes that could not be written; newer ones of the same keys win."""


class Producer(Protocol):
    """The part of `aiokafka.AIOKafkaProducer` that the outbox uses."""

    async def send(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int | None, *, headers: Headers
    ) -> asyncio.Future[Any]: ...

    def create_batch(self) -> Any: ...

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> asyncio.Future[Any]: ...


#: Topic, value, key, partition, headers.
_Arguments = tuple[str, bytes | None, bytes | None, int | None, Headers]


class _Sent(NamedTuple):
    arguments: _Arguments
    acknowledged: asyncio.Future[Any]


class Outbox:
    """Sends for the agents, and settles before each commit."""

    def __init__(self) -> None:
        self._producer: Producer | None = None
        self._posted: deque[_Arguments] = deque()
        self._pending: list[_Sent] = []
        self._tables: list[tuple[str, Keeper]] = []
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

    def add_table(self, changelog_topic: str, keeper: Keeper) -> None:
        """Write this keeper's changes; tables are written in the order in which they were added."""
        self._tables.append((changelog_topic, keeper))

    def post(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Send soon, and before any change that tables hold now is written.

        What follows from a change is posted in the same step as the change: with an await in between, the change
        could be written, the worker die, and what follows from it never be sent.
        """
        self._posted.append((topic, value, key, partition, headers))

    async def deliver(self) -> None:
        """Send what is posted, in its order."""
        assert self._producer is not None, "the producer has not started"
        assert self._delivery is not None
        async with self._delivery:
            while self._posted:
                arguments = self._posted[0]  # it stays until it is sent, for whoever settles meanwhile
                topic, value, key, partition, headers = arguments
                acknowledged = await self._producer.send(topic, value, key, partition, headers=headers)
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
        self._pending.append(_Sent((topic, value, key, partition, headers), acknowledged))
        return acknowledged

    async def settle(self) -> bool:
        """Whether all that was due is acknowledged. A failure is logged; the next call tries again."""
        if self._producer is None or self._lock is None:
            return False
        async with self._lock:
            sent: list[_Sent] = []
            taken = [(topic, keeper, keeper.take_changes()) for topic, keeper in self._tables]
            try:
                await self.deliver()
                sent, self._pending = self._pending, []
                for record in sent:
                    if not record.acknowledged.done():  # most of them are, and a shield is not free
                        await asyncio.shield(record.acknowledged)
                    record.acknowledged.result()
                for topic, _, changes in taken:
                    await self._write(topic, [change for change in changes if change.value is not None])
                for topic, _, changes in reversed(taken):
                    await self._write(topic, [change for change in changes if change.value is None])
            except BaseException as exc:
                for _, keeper, changes in taken:
                    keeper.give_back(changes)
                self._pending[:0] = sent  # due until they are acknowledged, whatever becomes of this attempt
                if not isinstance(exc, Exception):
                    raise
                log.error("nothing committed: the broker did not take what is due (%s: %s)", type(exc).__name__, exc)
                await self._send_again()
                return False
        return True

    async def _send_again(self) -> None:
        """Records whose sending failed are sent once more; the next attempt waits for them."""
        assert self._producer is not None
        for place, (arguments, acknowledged) in enumerate(self._pending):
            if acknowledged.done() and acknowledged.exception() is not None:
                topic, value, key, partition, headers = arguments
                try:
                    again = await self._producer.send(topic, value, key, partition, headers=headers)
                except Exception as exc:
                    log.error("%s: a record could not be sent again (%s: %s)", topic, type(exc).__name__, exc)
                    return
                self._pending[place] = _Sent(arguments, again)

    async def _write(self, topic: str, changes: Sequence[Change]) -> None:
        """One record a key, packed into whole batches: a tenth of the cost of sending them one by one."""
        assert self._producer is not None
        by_partition: dict[int, list[Change]] = {}
        for change in changes:
            by_partition.setdefault(change.partition, []).append(change)
        written = []
        for partition, rows in by_partition.items():
            batch = self._producer.create_batch()
            for row in rows:
                if batch.append(key=row.key, value=row.value, timestamp=None) is None:
                    written.append(await self._producer.send_batch(batch, topic, partition=partition))
                    batch = self._producer.create_batch()
                    batch.append(key=row.key, value=row.value, timestamp=None)  # the first one always fits
            batch.close()
            written.append(await self._producer.send_batch(batch, topic, partition=partition))
        for future in written:
            await asyncio.shield(future)
