"""Logs (WARNING) and counts records that were lost in Kafka before they were read."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from schemas.errors import BrokerUnavailable
from schemas.times import iso
from streams.kafka.faust.shared import Lost
from streams.kafka.faust.status import Restored
from streams.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

#: Called with a topic, a partition and two offsets. Returns the Kafka timestamp (epoch ms) of the first record
#: between the offsets; None if there is no record.
TimeOf = Callable[[str, int, int, int], Awaitable[int | None]]


class Losses:
    """Logs and counts lost records. Each loss is reported only once while the worker runs."""

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
        """Report records that the changelogs of restored tables have lost.

        Compaction does not change the first offset of a changelog, which is 0, and it keeps the newest row. So a
        changelog that begins at a later offset has lost records. `committed` has, by partition, the group's offset of
        `topic` at the time of the restore. If a partition has such an offset, the table with the name `needed` must
        have rows in this partition. If it has no rows, its changelog was emptied or recreated.
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
        """Report records that are skipped because another tool has raised the group's offset to `committed`.

        `newest` is the last offset that was read before; None if it is unknown.
        """
        if (newest is not None and newest + 1 >= committed) or not self._is_news(topic, partition, committed):
            return  # no record is skipped; records that are read a second time change nothing
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
