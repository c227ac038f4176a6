"""Fetches records. The fetched records of a partition become one record, whose value is the list of these records.

Records from a new connection are used only after a check that the connection leads to the same log. Offsets without a
record are skipped. Deleted records are reported as lost. If records lie before the expected offset, the partition's
leader lags, and is asked again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from aiokafka.errors import IllegalStateError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.faust.consumer_state import ConsumerState
from streams.kafka.faust.shared import Lost
from streams.kafka.patches.header_names import FetchedRecord

log = logging.getLogger(__name__)

#: Maximum seconds of a fetch. A fetch covers only the partitions that were active when it began. During a recovery,
#: these are only changelogs, so the partitions of agents must wait until such a fetch ends.
FETCH_SECONDS = 0.2

#: Seconds to wait for a leader that lags. It usually catches up within moments. Records that it still lacks after
#: this time count as lost.
LAGGING_SECONDS = 60.0


class Fetching(ConsumerState):
    """Overrides `_getmany`, which Faust calls for each fetch of records."""

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        """Fetch for at most `FETCH_SECONDS`. If a right is missing, stop the worker: Faust would retry forever."""
        try:
            return await self._fetched(active_partitions, min(timeout, FETCH_SECONDS))
        except NOT_ALLOWED as exc:
            self._hot.halt(exc, "a fetch")
            await asyncio.sleep(timeout)  # wait, because Faust would retry without a pause
            return {}

    async def _fetched(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        seeks, recoveries = self._seeks, self._recoveries
        fetched = await super()._getmany(set(active_partitions or ()), timeout)
        if recoveries != self._recoveries:
            fetched = await self._without_rows(fetched)
        if seeks == self._seeks and (back := self._steps_back(fetched)):
            fetched = await self._without_steps_back(fetched, back)
        if gaps := self._gaps(fetched):
            await self._pass_over(gaps, fetched)
        if seeks != self._seeks:
            # There was a seek during the fetch, so the fetched records may lie before or after the new position. The
            # error means that partitions were revoked. Then the next assignment seeks.
            with contextlib.suppress(IllegalStateError):
                await self._seek_to_start()
            return {}
        if self._reconnected() and not await self._is_still_the_same_log(self._hot.on_reconnect):
            return {}
        return {
            tp: [as_one_record(records)]
            if records and (tp.topic in self._hot.topics or tp.topic in self._hot.changelogs)
            else records
            for tp, records in fetched.items()
        }

    async def _without_rows(self, fetched: Mapping[TP, Any]) -> Mapping[TP, Any]:
        """Drop the fetched rows of changelogs, and seek these changelogs back to the start of the recovery.

        The rows were fetched before the recovery began to read, so Faust would drop them.
        """
        rows = {tp: start for tp, start in self._restored_from.items() if tp in fetched}
        return await self._fetch_again(fetched, rows)

    async def _fetch_again(self, fetched: Mapping[TP, Any], offsets: Mapping[TP, int]) -> Mapping[TP, Any]:
        """Drop the fetched records of these partitions, and seek the partitions to these offsets."""
        # The error means that partitions were revoked. Then the next assignment seeks.
        with contextlib.suppress(IllegalStateError):
            # `Seeking.seek_wait` is not called, because it would count a recovery.
            await driver.Consumer.seek_wait(self, offsets)
        return {tp: records for tp, records in fetched.items() if tp not in offsets}

    def _steps_back(self, fetched: Mapping[TP, Sequence[Any]]) -> dict[TP, int]:
        """Return the expected offset of each partition whose fetched records lie before it.

        A leader that has fallen behind does not have the expected offset, so the client goes to the log's start.
        After `LAGGING_SECONDS` such records are accepted.
        """
        now, back = time.monotonic(), {}
        for tp, expected in self._expected.items():
            if records := fetched.get(tp):
                if records[0].offset >= expected:
                    self._back_since.pop(tp, None)
                elif now < self._back_since.setdefault(tp, now) + LAGGING_SECONDS:
                    back[tp] = expected
                else:
                    self._hot.start_over(tp)
        return back

    async def _without_steps_back(self, fetched: Mapping[TP, Any], back: Mapping[TP, int]) -> Mapping[TP, Any]:
        for tp, expected in back.items():
            log.warning(
                "%s[%d]: its leader does not have offset %d yet, and is asked again", tp.topic, tp.partition, expected
            )
        return await self._fetch_again(fetched, back)

    def _gaps(self, fetched: Mapping[TP, Sequence[Any]]) -> dict[TP, tuple[int, int]]:
        """Return, by partition, the offsets that were passed without a record: (expected offset, next offset).

        Only the caller takes records from aiokafka. So if no records were fetched but the position is beyond the
        expected offset, the offsets in between were passed without a record.
        """
        gaps = {}
        subscription = cast(Any, self._thread)._consumer._subscription.subscription
        states = subscription and subscription.assignment
        for tp, expected in self._expected.items():
            if records := fetched.get(tp):
                reached = records[0].offset
                self._expected[tp] = records[-1].offset + 1
            else:
                state = states and states.state_value(tp)
                reached = state._position if state is not None else None
            if reached is not None and reached > expected:
                gaps[tp] = (expected, reached)
        return gaps

    async def _pass_over(self, gaps: Mapping[TP, tuple[int, int]], fetched: Mapping[TP, Sequence[Any]]) -> None:
        """Skip the offsets of the gaps. Report deleted records as lost, but not markers and aborted records."""
        seeks, earliest = self._seeks, await self._earliest(gaps)
        if seeks != self._seeks:
            return
        for tp, (start, end) in gaps.items():
            records = fetched.get(tp)
            begin, first = max(start, self._told_lost.get(tp, 0)), min(earliest[tp], end)
            if first > begin:  # after a seek, the same offsets may be passed again: report them only once
                self._told_lost[tp] = first
                lost = Lost(tp.topic, tp.partition, begin, first, records[0].timestamp if records else None)
                for tell in self._hot.on_lost:
                    tell(lost)
            if not records:
                self._expected[tp] = end
                self._ledgers[tp].pass_over(start, end)

    def _reconnected(self) -> bool:
        """Return True if a connection was recreated since the last fetch, because it may lead to another broker."""
        connections = dict(cast(Any, self._thread)._consumer._client._conns)
        replaced = any(self._connections.get(node, made) is not made for node, made in connections.items())
        self._connections |= connections
        return replaced


def as_one_record(records: Sequence[Any]) -> FetchedRecord:
    """Return one record, whose value is the list of these records. It has the last record's offset."""
    last = records[-1]
    return FetchedRecord(last.topic, last.partition, last.offset, last.timestamp, last.timestamp_type, None, records)
