"""A producer that keeps its schedule, regardless of what happens to its records.

A record's timestamp is the moment at which it is due. A record that is handed over late is already as old as its
delay, so neither a slow broker nor a slow producer makes the load look lighter than intended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import aiokafka
import numpy as np

TICK_SECONDS: Final = 0.02
BATCH_BYTES: Final = 262_144
#: A producer that sends less than this share of the rate, or sends this late, has not kept the rate.
KEPT: Final = 0.99
LATE_MS: Final = 250.0


class Record(NamedTuple):
    """A record and its partition."""

    partition: int
    key: bytes
    value: bytes


class Delivered(NamedTuple):
    """The result of a load. Lateness is that of each batch's first record, in ms, when the batch is handed over."""

    produced: int
    rate: float
    achieved: float
    late_p99_ms: float
    late_max_ms: float

    @property
    def kept(self) -> bool:
        """Whether the producer sent all records, and in time."""
        return self.achieved >= KEPT * self.rate and self.late_p99_ms <= LATE_MS


class OpenLoop:
    """Produces to one topic."""

    def __init__(self, producer: aiokafka.AIOKafkaProducer, topic: str, partitions: int) -> None:
        self._producer, self._topic, self._partitions = producer, topic, partitions
        self.produced = 0
        self._late: list[float] = []
        self._acknowledged: list[asyncio.Future[Any]] = []

    async def fill(self, records: Sequence[Record]) -> None:
        """Produce all records, as fast as the broker accepts them."""
        now = time.time()
        lanes = [[(now, one) for one in records if one.partition == place] for place in range(self._partitions)]
        await asyncio.gather(*(self._send(place, lane) for place, lane in enumerate(lanes)))
        await asyncio.gather(*self._acknowledged)
        self._acknowledged.clear()

    async def run(self, records: Sequence[Record], rate: float) -> Delivered:
        """Produce the records; record n is due n / `rate` seconds after now. Raises the broker's errors."""
        self._late.clear()
        lanes: list[list[tuple[float, Record]]] = [[] for _ in range(self._partitions)]
        filled, over = [asyncio.Event() for _ in lanes], asyncio.Event()
        senders = [asyncio.create_task(self._drain(place, lanes, filled[place], over)) for place in range(len(lanes))]
        begun, monotonic, done = time.time(), time.monotonic(), 0
        while done < len(records):
            due = min(len(records), int((time.monotonic() - monotonic) * rate) + 1)
            for number in range(done, due):
                record = records[number]
                lanes[record.partition].append((begun + number / rate, record))
                filled[record.partition].set()
            done = due
            await asyncio.sleep(TICK_SECONDS)
        over.set()
        for event in filled:
            event.set()
        await asyncio.gather(*senders)
        await asyncio.gather(*self._acknowledged)
        self._acknowledged.clear()
        took = max(time.monotonic() - monotonic, len(records) / rate)
        late = np.percentile(self._late or [0.0], [99, 100])
        return Delivered(len(records), rate, len(records) / took, float(late[0]) * 1e3, float(late[1]) * 1e3)

    async def one(self, record: Record, at: float) -> None:
        """Produce one record, which is due at `at` (epoch seconds)."""
        sent = await self._producer.send(
            self._topic, record.value, record.key, record.partition, timestamp_ms=int(at * 1e3)
        )
        self.produced += 1
        self._acknowledged.append(sent)

    async def _drain(
        self, place: int, lanes: list[list[tuple[float, Record]]], filled: asyncio.Event, over: asyncio.Event
    ) -> None:
        while True:
            await filled.wait()
            filled.clear()
            lane, lanes[place] = lanes[place], []
            if lane:
                await self._send(place, lane)
            elif over.is_set():
                return
            if over.is_set():
                filled.set()

    async def _send(self, place: int, lane: Sequence[tuple[float, Record]]) -> None:
        """Send whole batches, one after the other, which keeps a session's messages in order."""
        rest = 0
        while rest < len(lane):
            batch, first = self._producer.create_batch(), rest
            while rest < len(lane):
                at, record = lane[rest]
                if batch.append(key=record.key, value=record.value, timestamp=int(at * 1e3)) is None:
                    break
                rest += 1
            batch.close()
            self._acknowledged.append(await self._producer.send_batch(batch, self._topic, partition=place))
            self._late.append(time.time() - lane[first][0])
            self.produced += rest - first
