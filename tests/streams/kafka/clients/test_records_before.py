"""Partitions are read until the consumer's positions have passed their ends; silence is no end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import aiokafka
import pytest

from streams.kafka.clients import log_reader
from streams.kafka.clients.log_reader import records_before

ONE, TWO = aiokafka.TopicPartition("t", 0), aiokafka.TopicPartition("t", 1)


class Record(NamedTuple):
    offset: int


class Consumer:
    """Gives what it is scripted to give: records by partition, and the positions after them."""

    def __init__(self, *script: tuple[dict[Any, list[int]], dict[Any, int]], end: int = 10) -> None:
        self._script, self._positions, self._end = list(script), {ONE: 0, TWO: 0}, end
        self.asked: list[set[Any]] = []

    async def position(self, partition: Any) -> int:
        return self._positions[partition]

    async def getmany(self, *partitions: Any, timeout_ms: int) -> dict[Any, list[Record]]:
        self.asked.append(set(partitions))
        if not self._script:
            return {}
        records, positions = self._script.pop(0)
        self._positions |= positions
        return {tp: [Record(offset) for offset in offsets] for tp, offsets in records.items()}

    async def end_offsets(self, partitions: Sequence[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, self._end)


async def read(consumer: Consumer, ends: dict[Any, int]) -> list[int]:
    return [
        record.offset
        async for fetched in records_before(consumer, ends, 0)
        for records in fetched.values()
        for record in records
    ]


async def test_a_marker_at_the_end_is_passed_without_a_record() -> None:
    consumer = Consumer(({ONE: [0, 1]}, {ONE: 2}), ({}, {ONE: 3}))
    assert await read(consumer, {ONE: 3}) == [0, 1]


async def test_a_partition_that_is_through_is_not_asked_any_more() -> None:
    consumer = Consumer(({ONE: [0]}, {ONE: 1}), ({}, {}), ({TWO: [0, 1]}, {TWO: 2}))
    assert await read(consumer, {ONE: 1, TWO: 2}) == [0, 0, 1]
    assert consumer.asked == [{ONE, TWO}, {TWO}, {TWO}]


async def test_silence_is_an_error_where_there_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "SILENT_SECONDS", 0.01)
    with pytest.raises(TimeoutError):
        await read(Consumer(({ONE: [0]}, {ONE: 1})), {ONE: 10})


async def test_where_the_log_ends_before_there_is_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was emptied meanwhile."""
    monkeypatch.setattr(log_reader, "SILENT_SECONDS", 0.01)
    assert await read(Consumer(({ONE: [0]}, {ONE: 1}), end=1), {ONE: 10}) == [0]
