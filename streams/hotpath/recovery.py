"""Changelogs become rows again after each assignment: what of Faust's recovery (`overrides` says why) is replaced.

A fetched batch of a changelog is one event. An event of an earlier assignment is of no use: its table reads each of
its partitions from the start again, and what is taken as read would not be read.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import faust
from faust.tables.recovery import RebalanceAgain, Recovery, ServiceStopped
from faust.types import TP
from mode import Service

from streams.hotpath.outbox import Keeper

log = logging.getLogger(__name__)

#: Called with what must not be passed over, and where it happened.
Halt = Callable[[BaseException, str], None]


class KeptTable(faust.Table[Any, Any]):
    """A changelog whose rows live in a `Keeper`."""

    def __init__(self, *args: Any, keeper: Keeper, halt: Halt, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keeper, self._halt = keeper, halt
        self._restored: dict[TP, int] = {}

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        rows: dict[int, list[tuple[bytes, bytes | None]]] = defaultdict(list)
        for event in batch:
            message = event.message
            rows[message.partition] += [(record.key, record.value) for record in message.value]
            self._restored[message.tp] = message.offset
        for partition, of_partition in rows.items():
            try:
                self.keeper.restore(partition, of_partition)
            except Exception as exc:  # Faust would log it and wait for ever
                self._halt(exc, f"{self.changelog_topic_name}[{partition}]: a row cannot be read")
                return

    def persisted_offset(self, tp: TP) -> int | None:
        return self._restored.get(tp, -1)  # with None, Faust goes on from where it last stopped

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        # Records are read again from the commit, so rows are read again from their changelog: what was changed
        # since and not written would be half there. That holds for partitions that stay, too, and a worker that
        # was expelled and came back looks as if it had kept its own.
        self._restored.clear()
        self.keeper.own(frozenset())

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        try:
            await self.call_recover_callbacks()
        except Exception as exc:  # Faust would swallow it, and the worker read on without ever being ready
            self._halt(exc, "what follows recovery")


class KeptRecovery(Recovery):
    """Reads changelogs to their ends, as the broker says them when it begins."""

    def _set_recovery_started(self) -> None:
        super()._set_recovery_started()
        self.signal_recovery_end.clear()

    @Service.task
    async def _slurp_changelogs(self) -> None:
        queue = self.tables.changelog_queue
        while not self.should_stop:
            event = await queue.get()
            message = event.message
            if message.tp not in self.active_tps or message.generation_id != self.app.consumer_generation_id:
                continue
            if message.offset > self.active_offsets.get(message.tp, -1):
                self.active_offsets[message.tp] = message.offset
                self.tp_to_table[message.tp].apply_changelog_batch([event])
            if self.in_recovery and not self.need_recovery():
                self._set_recovery_ended()
                self.signal_recovery_end.set()  # it stays set: who waits for it may not have begun to

    async def _wait(self, coro: Any, timeout: Any = None) -> None:
        try:
            await super()._wait(coro, timeout)
        except ServiceStopped:
            if self.should_stop:
                raise
            # Faust takes a broker that did not answer in time for the end of the service: no rows, and no word.
            log.warning("the broker did not answer for %g s: recovery of the tables begins anew", timeout)
            self.signal_recovery_start.set()
            raise RebalanceAgain from None
