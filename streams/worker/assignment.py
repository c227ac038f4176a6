"""Reacts to assigned and revoked partitions: recovers tables, looks for lost records, and lets shards catch up."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

from schemas.errors import BrokerUnavailable
from streams.intake.session_notes import SessionNotes
from streams.kafka.broker_link import RETRY_SECONDS
from streams.kafka.clients.log_reader import time_of
from streams.kafka.losses import Losses
from streams.memory.agent import LongTermAgent
from streams.memory.refining import RefiningJob
from streams.recall.reworded_profiles import RewordedProfiles
from streams.runtime.timers import Timers
from streams.shards.owned import OwnedShards
from streams.worker.wiring.context import WorkerContext
from streams.worker.wiring.intake import Intake

log = logging.getLogger(__name__)


class Assignment:
    """Reacts to Faust's partition assignments, and passes them to the parts of the worker."""

    def __init__(
        self,
        context: WorkerContext,
        shards: OwnedShards,
        intake: Intake,
        notes: SessionNotes,
        long_term: LongTermAgent,
        refining: RefiningJob | None,
        rewording: RewordedProfiles | None,
        timers: Timers,
    ) -> None:
        self._recovered = False
        self._context, self._hot, self._topics = context, context.hot, context.topics
        self._shards, self._intake, self._notes, self._long_term = shards, intake, notes, long_term
        self._refining, self._rewording, self._timers = refining, rewording, timers
        self._losses = Losses(context.metrics, partial(time_of, context.settings.kafka))
        shards.coming_back.windows = self._hot.recovering
        self._hot.on_seek.append(self._sought)
        self._hot.on_lost.append(self._losses.deleted)
        context.faust.on_partitions_revoked.connect(self._revoked)
        context.faust.on_partitions_assigned.connect(self._assigned)

    def is_recovered(self) -> bool:
        """True if the tables of the newest assignment are recovered."""
        return self._recovered

    async def tables_recovered(self) -> None:
        """Complete the recovery. Faust calls this when all tables are recovered."""
        windows, stores, assignments = self._intake.windows, self._context.stores, self._hot.assignments
        await self._intake.short_term.recovered()
        if assignments != self._hot.assignments:
            return  # a newer assignment is being recovered; this method is called again after its recovery
        for partition in stores.partitions():
            stores.fitted(partition)
            if not windows.has_changes(partition):  # otherwise the next flush commits the state with these changes
                stores.commit(partition, self._hot.outbox.ends(partition), stores.begin())
        self._notes.recovered()
        self._recovered = True
        self._shards.coming_back.is_back(self._shards.partitions(), "windows")

    async def _revoked(self, _app: Any, /, *arguments: Any, signal: Any, **_: Any) -> None:
        (revoked,) = arguments
        self._long_term.revoke(frozenset(tp.partition for tp in revoked if tp.topic == self._topics.long_term))

    async def _assigned(self, _app: Any, /, *arguments: Any, signal: Any, **_: Any) -> None:
        (assigned,) = arguments
        self._recovered = False
        self._hot.connect()
        ours = frozenset(tp.partition for tp in assigned if tp.topic == self._topics.long_term)
        self._shards.own(ours)
        for partition in ours:
            self._shards.coming_back.begins(partition, "windows", "catching up")
        self._long_term.own(ours)
        if self._refining is not None:
            self._refining.own(ours)
        if self._rewording is not None:
            self._rewording.clear()

    async def _sought(self) -> None:
        short_term, topics = self._intake.short_term, self._topics
        started_over = [short_term.start_over(p) for p in self._hot.read_from_start(topics.conversations)]
        # Flush the deleted rows of the former log before the new log is read. Rows of the new log have smaller
        # offsets, so at a later restore, rows of the former log would replace them.
        if any(started_over) and not await self._hot.outbox.flush():
            servers = self._context.settings.kafka.bootstrap_servers
            self._hot.halt(BrokerUnavailable(servers), "sessions of the former log")
        await self._look_for_losses()
        committed = self._hot.committed(topics.long_term)
        for partition in self._long_term.catching_up:
            if partition in committed:
                self._timers.beside(self._catch_up(partition, committed[partition], self._hot.assignments))

    async def _look_for_losses(self) -> None:
        """Report records missing in the windows' changelogs, and records that a changed group offset skips."""
        hot, topic, windows = self._hot, self._topics.conversations, self._intake.windows
        self._losses.restored(await hot.restored(), "sessions", topic, hot.committed(topic))
        for partition, committed in hot.moved(topic).items():
            newest = max((session.offset for session in windows.of_partition(partition)), default=None)
            self._timers.beside(self._losses.moved(topic, partition, newest, committed))
        requests = self._topics.summary_requests
        for partition, committed in hot.moved(requests).items():
            self._timers.beside(self._losses.moved(requests, partition, None, committed))

    async def _catch_up(self, partition: int, committed: int, assignments: int) -> None:
        while assignments == self._hot.assignments:  # a newer assignment starts this again, with its committed offset
            try:
                await self._long_term.catch_up(partition, committed)
                return
            except BrokerUnavailable as exc:  # the next attempt continues at the shard's position
                log.warning("shard %d: %s", partition, exc)
                await asyncio.sleep(RETRY_SECONDS)
            except Exception as exc:
                self._hot.halt(exc, f"shard {partition}")
                return
