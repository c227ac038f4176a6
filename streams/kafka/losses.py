"""Logs (WARNING) and counts what was lost in Kafka before it was read."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from schemas.errors import BrokerUnavailable
from schemas.times import iso
from streams.kafka.faust.shared import Lost
from streams.kafka.faust.status import Restored
from streams.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

#: The Kafka timestamp (epoch ms) of the first record of a topic's partition between two offsets; None without one.
TimeOf = Callable[[str, int, int, int], Awaitable[int | None]]


class Losses:
    """Reports each loss once while the worker runs."""

    def __init__(self, metrics: Metrics, time_of: TimeOf) -> None:
        self._metrics, self._time_of = metrics, time_of
        self._told: set[tuple[str, int, int]] = set()

    def deleted(self, lost: Lost) -> None:
        """Report records that were deleted from the log before they were read."""
        self._metrics.lost_records.labels(lost.topic).inc(lost.end - lost.start)
        log.warning(
            "%s[%d]: offsets %d to %d were deleted before they were read; the oldest remaining record is %s",
            lost.topic,
            lost.partition,
            lost.start,
            lost.end - 1,
            "none" if lost.next_at is None else f"of {iso(lost.next_at)}",
        )

    def restored(self, tables: Sequence[Restored], needed: str, topic: str, committed: Mapping[int, int]) -> None:
        """Report losses in the changelogs of restored tables; `committed` are the offsets of `topic` at that time.

        Compaction keeps a changelog's first offset and its newest row. So a changelog that begins later has lost
        records, and if the table `needed` has no rows, its changelog was emptied or recreated.
        """
        for table in tables:
            offset = committed.get(table.partition, 0)
            emptied = not table.rows and offset and (table.start or table.table == needed)
            if not (emptied or table.start) or not self._is_news(table.topic, table.partition, table.start):
                continue
            self._metrics.lost_records.labels(table.topic).inc(table.start)
            if emptied:
                self._metrics.emptied_changelogs.labels(table.topic).inc()
                log.warning(
                    "%s[%d]: restored 0 rows although offset %d of %s was committed; its first offset is %d: the "
                    "content of its rows is lost",
                    table.topic,
                    table.partition,
                    offset,
                    topic,
                    table.start,
                )
            else:
                log.warning(
                    "%s[%d]: restored %d rows; offsets 0 to %d were deleted: rows that were only there are lost",
                    table.topic,
                    table.partition,
                    table.rows,
                    table.start - 1,
                )

    async def moved(self, topic: str, partition: int, newest: int | None, committed: int) -> None:
        """Report that another tool has set the group's offset; `newest` is the last offset read, if known."""
        if (newest is not None and newest + 1 >= committed) or not self._is_news(topic, partition, committed):
            return  # records before a lowered offset are in: reading them again changes nothing
        if newest is None:
            log.warning(
                "%s[%d]: the group's offset was set to %d by another tool; it is unknown which offsets were skipped",
                topic,
                partition,
                committed,
            )
            return
        start = newest + 1
        self._metrics.lost_records.labels(topic).inc(committed - start)
        try:
            at = await self._time_of(topic, partition, start, committed)
        except BrokerUnavailable:
            at = None
        log.warning(
            "%s[%d]: offsets %d to %d were skipped unread: the group's offset was set to %d by another tool; "
            "the oldest remaining one of these records is %s",
            topic,
            partition,
            start,
            committed - 1,
            committed,
            "none" if at is None else f"of {iso(at)}",
        )

    def _is_news(self, topic: str, partition: int, offset: int) -> bool:
        known = (topic, partition, offset) in self._told
        self._told.add((topic, partition, offset))
        return not known
