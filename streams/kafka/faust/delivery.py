"""Delivers batches to agents, and acknowledges them when they are processed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterator
from typing import Any

import faust
from faust.serializers.schemas import Schema
from faust.types import TP
from mode.services import WaitResults

from streams.kafka.commit.ledger import Ledger
from streams.kafka.faust.consumer_state import ConsumerState


class RecordsSchema(Schema[Any, Any]):
    """Passes keys and values to the agents without decoding them. The agents decode them, and post dead letters."""

    def loads_key(self, app: Any, message: Any, *, loads: Any = None, serializer: Any = None) -> Any:
        return message.key

    def loads_value(self, app: Any, message: Any, *, loads: Any = None, serializer: Any = None) -> Any:
        return message.value


class ByBatch(faust.Stream[Any]):
    """A stream with an iterator in Python.

    Faust's compiled iterator would acknowledge messages without a call of `Consumer.ack`, which `Delivery` overrides.
    """

    def __aiter__(self) -> Any:
        return self._py_aiter()


class Delivery(ConsumerState):
    """Delivers each batch of records of a partition as one message of Faust, and acknowledges it as a whole."""

    async def wait_first(self, *coros: Any, timeout: Any = None) -> WaitResults:
        """Run the first coroutine at once, and create tasks only if it has to wait.

        To pass one batch to an agent, Faust creates four tasks. Each task runs only after all other callbacks that
        are ready in the event loop. Under load, this took a tenth of a second for each batch.
        """
        first, *others = coros
        if not isinstance(first, Coroutine):
            return await super().wait_first(*coros, timeout=timeout)
        try:
            waits_for = first.send(None)
        except BaseException as ended:
            for other in others:
                if isinstance(other, Coroutine):
                    # Otherwise Python would warn that this coroutine was never awaited.
                    other.close()
            if isinstance(ended, StopIteration):  # the first coroutine finished without waiting
                return WaitResults([first], [ended.value], False)
            raise
        return await super().wait_first(Begun(first, waits_for), *others, timeout=timeout)

    def _to_message(self, tp: TP, record: Any) -> Any:
        """Add a fetched batch to its partition's ledger. Its offset is committed only after it is acknowledged."""
        if tp.topic in self._hot.topics:
            self._ledgers[tp].deliver(record.offset)
        return super()._to_message(tp, record)

    def ack(self, message: Any) -> bool:
        """Acknowledge a whole batch when its effects are done.

        Faust also acknowledges messages that it skips in a rebalance, and messages for which an agent has raised an
        exception. We do not acknowledge them, so their records are read again.
        """
        if message.topic not in self._hot.topics:
            return super().ack(message)
        if message.acked:
            return False
        message.acked = True
        self._unacked_messages.discard(message)
        effects = self._hot.effects.pop((message.tp, message.offset), None)
        if self._hot.halted or self.is_stale(message):
            return False
        ledger = self._ledgers[message.tp]
        if effects is None:
            self._processed(message, ledger)
        else:
            effects.add_done_callback(lambda done: self._effects_are_done(message, ledger, done))
        return True

    def _effects_are_done(self, message: Any, ledger: Ledger, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            return
        if (exc := done.exception()) is not None:
            self._hot.halt(exc, f"{message.topic}[{message.partition}]@{message.offset}")
            return
        self._processed(message, ledger)

    def _processed(self, message: Any, ledger: Ledger) -> None:
        ledger.acknowledge(message.offset)
        if self._hot.waiters and self._ledgers.get(message.tp) is ledger:
            self._hot.waiters.reached(message.tp, ledger.committable() or 0)

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Do not keep Faust's list of offsets without a record, which grows with each batch: the ledger is enough."""
        if tp.topic not in self._hot.topics:
            await super()._add_gap(tp, offset_from, offset_to)

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        """Yield the partitions that have a ledger. Faust would search its lists of single offsets."""
        return iter([tp for tp in self._ledgers if topics is None or tp in topics or tp.topic in topics])

    def _new_offset(self, tp: TP) -> int | None:
        """Return the offset that may be committed, from the ledger. Faust would search its lists of offsets."""
        return self._ledgers[tp].committable()


class Begun:
    """A coroutine that was started by `send`, and that waits for a future. Awaiting it continues the coroutine."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._coroutine, self._waits_for = coroutine, waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            yield self._waits_for
        except BaseException as exc:
            self._coroutine.throw(exc)
            raise
        return (yield from self._coroutine.__await__())
