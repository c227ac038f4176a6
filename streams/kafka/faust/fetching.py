"""How records are fetched: those of a partition become one record, whose value is the list.

Nothing that came over a new connection is used before it is known to be of the same log. Offsets without a record are
passed over, and told where there was one. What lies before the next offset is of a leader that lags.
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
from streams.kafka.clients.header_names import FetchedRecord
from streams.kafka.faust.consumer_state import ConsumerState
from streams.kafka.faust.shared import Lost

log = logging.getLogger(__name__)

#: The longest that a fetch waits here: it is for the partitions that were active when it began, and after a recovery
#: none of them is an agent's.
FETCH_SECONDS = 0.2

#: A leader that lags has what it lacks after moments. What it has not after so long is taken for lost.
LAGGING_SECONDS = 60.0


class Fetching(ConsumerState):
    """`_getmany` is what Faust calls for each fetch."""

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        """Fetch for a fifth of a second at most. A right that is missing stops the worker instead of repeating."""
        try:
            return await self._fetched(active_partitions, min(timeout, FETCH_SECONDS))
        except NOT_ALLOWED as exc:
            self._hot.halt(exc, "a fetch")
            await asyncio.sleep(timeout)  # it is refused at once, and would be asked for again at once
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
            # Fetched across a seek: these records may lie before or after the new position.
            with contextlib.suppress(IllegalStateError):  # they are being revoked: those that come are sought then
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
        """Seek changelogs back to where recovery begins: these rows may be from before, and would be dropped."""
        rows = {tp: start for tp, start in self._restored_from.items() if tp in fetched}
        with contextlib.suppress(IllegalStateError):  # they are being revoked: their next owner seeks them, too
            await driver.Consumer.seek_wait(self, rows)  # no recovery begins: `Seeking` would count one
        return {tp: records for tp, records in fetched.items() if tp not in rows}

    def _steps_back(self, fetched: Mapping[TP, Sequence[Any]]) -> dict[TP, int]:
        """Where what comes lies before what is next, by the offset of that.

        A leader that has fallen behind has no such offset, and the client goes to the log's start. What still comes
        of it after a time is what there is.
        """
        now, back = time.monotonic(), {}
        for tp, expected in self._expected.items():
            if records := fetched.get(tp):
                if records[0].offset >= expected:
                    self._back_since.pop(tp, None)
                elif now < self._back_since.setdefault(tp, now) + LAGGING_SECONDS:
                    back[tp] = expected
                else:
                    self._hot.begin_anew(tp)
        return back

    async def _without_steps_back(self, fetched: Mapping[TP, Any], back: Mapping[TP, int]) -> Mapping[TP, Any]:
        for tp, expected in back.items():
            log.warning(
                "%s[%d]: its leader has no offset %d yet, and is asked again", tp.topic, tp.partition, expected
            )
        with contextlib.suppress(IllegalStateError):  # they are being revoked: those that come are sought then
            await driver.Consumer.seek_wait(self, back)
        return {tp: records for tp, records in fetched.items() if tp not in back}

    def _gaps(self, fetched: Mapping[TP, Sequence[Any]]) -> dict[TP, tuple[int, int]]:
        """Offsets that were passed without a record, by partition: from the expected one up to the next one.

        Only the caller takes fetched records, so a position beyond the last record means that offsets were passed.
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
        """Markers and aborted records are no loss; what is no longer in the log is, and is told."""
        seeks, earliest = self._seeks, await self._earliest(gaps)
        if seeks != self._seeks:
            return
        for tp, (start, end) in gaps.items():
            records = fetched.get(tp)
            begin, first = max(start, self._told_lost.get(tp, 0)), min(earliest[tp], end)
            if first > begin:  # a seek before the next commit passes the same ones again
                self._told_lost[tp] = first
                lost = Lost(tp.topic, tp.partition, begin, first, records[0].timestamp if records else None)
                for tell in self._hot.on_lost:
                    tell(lost)
            if not records:
                self._expected[tp] = end
                self._ledgers[tp].pass_over(start, end)

    def _reconnected(self) -> bool:
        """Whether a connection to a broker was recreated since the last fetch: it may be another broker."""
        connections = dict(cast(Any, self._thread)._consumer._client._conns)
        replaced = any(self._connections.get(node, made) is not made for node, made in connections.items())
        self._connections |= connections
        return replaced


def as_one_record(records: Sequence[Any]) -> FetchedRecord:
    """All of them as one record, which lies where the last of them does."""
    last = records[-1]
    return FetchedRecord(last.topic, last.partition, last.offset, last.timestamp, last.timestamp_type, None, records)
