"""Overrides of Faust's tables and recovery: rows are restored from changelogs after each assignment.

A fetched batch of a changelog is one event. Each changelog is read up to a mark that this worker writes (`marks`
gives the reason). If a partition stays with this worker, or if its rows are on this worker's disk, its changelog is
read from the end of the known rows (`Positions`, `Place`). All other changelogs are read from the start. Events of an
earlier assignment are dropped: they would advance the position of the new assignment, which would then skip records
that it has not read.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, cast

import faust
from faust.tables.manager import TableManager
from faust.tables.recovery import RebalanceAgain, Recovery, ServiceStopped
from faust.types import TP
from mode import Service

from schemas.errors import DataDirError
from streams.kafka.commit.kept_partitions import KeptPartitions
from streams.kafka.commit.marks import END, MARK, READ, Progress
from streams.kafka.commit.outbox import StateStore
from streams.kafka.commit.positions import Positions

log = logging.getLogger(__name__)

KEY_AND_VALUE = attrgetter("key", "value")

#: Writes marks to partitions of changelogs, retries until they are acknowledged, and returns their offsets.
Mark = Callable[[Mapping[str, Iterable[int]]], Awaitable[Mapping[tuple[str, int], int]]]

#: Called with an error that must stop the worker, and with a text that names the place where it happened.
Halt = Callable[[BaseException, str], None]


class KeptTable(faust.Table[Any, Any]):
    """A table whose rows are in a `StateStore`, not in a store of Faust."""

    def __init__(
        self,
        *args: Any,
        kept: StateStore,
        halt: Halt,
        mark: Mark,
        progress: Progress | None,
        on_disk: KeptPartitions,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._on_disk = on_disk
        self.kept, self._halt, self.mark, self.progress = kept, halt, mark, progress
        self.positions = Positions()
        self._generation = 0

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        """Restore rows into the `StateStore`.

        An error stops the worker. Faust would only log it, and then wait forever for the end of the recovery.
        """
        for event in batch:
            message = event.message
            records = message.value
            rows = [row for row in map(KEY_AND_VALUE, records) if not row[0].startswith(MARK)]
            marks = (
                [row for row in map(KEY_AND_VALUE, records) if row[0].startswith(MARK)]
                if len(rows) < len(records)
                else []
            )
            try:
                self.kept.restore(message.partition, rows)
                for key, value in marks:
                    if key == READ and self.progress is not None:
                        self.progress.restore(message.partition, value)
            except Exception as exc:
                where = f"{self.changelog_topic_name}[{message.partition}]"
                self._halt(exc, f"{where}: a row cannot be read")
                return
            ends = sum(key == END for key, _ in marks)
            self.positions.read(message.partition, message.offset + 1, len(records) - ends)
            try:
                self._on_disk.restored(
                    self.changelog_topic_name,
                    message.partition,
                    message.offset + 1,
                    self.positions.rows[message.partition],
                    0 if self.progress is None else self.progress.written(message.partition),
                )
            except DataDirError as exc:
                self._halt(exc, f"{self.changelog_topic_name}[{message.partition}]")

    def persisted_offset(self, tp: TP) -> int | None:
        """Return the offset of the last changelog record that memory includes; -1 if there is none.

        If the result were None, Faust would continue at the offset at which the last recovery stopped.
        """
        return (self.positions.known(tp.partition) or 0) - 1

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        """Decide for each assigned partition from which offset its changelog is read.

        After this, records are read again from the committed offset. So the rows must equal the changelog, and
        changes that are not written are undone. If we also had a partition in the previous generation, it had no
        other owner in between, and its changelog is read from the position of memory. The changelogs of all other
        partitions are read from the position of the disk. A worker that was expelled and rejoins has missed a
        generation, unless it is the only member of the group: then it may rejoin in the same generation.
        """
        follows, self._generation = generation_id - self._generation in (0, 1), generation_id
        ours = {tp.partition for tp in assigned if tp.topic == self.changelog_topic_name}
        new = {tp.partition for tp in newly_assigned if tp.topic == self.changelog_topic_name}
        try:
            await self._on_disk.own(ours)
            # Rows may have been written during this await. So the positions are read after it, and nothing more is
            # awaited.
            stays = {one for one in ours - new if follows and self.positions.known(one) is not None}
            self._hold(stays)
            for partition in ours - stays:
                self._resume(partition)
        except DataDirError as exc:
            self._halt(exc, self.changelog_topic_name)

    def _resume(self, partition: int) -> None:
        """Set the partition's position in the changelog to the position of the rows on the disk, if there are any."""
        if (place := self._on_disk.resume(self.changelog_topic_name, partition)) is not None:
            self.positions.resume(partition, place.offset, place.rows)
            if self.progress is not None:
                self.progress.resume(partition, place.read)

    def _hold(self, partitions: Collection[int]) -> None:
        """Set the rows of these partitions back to the content of the changelog. Drop all other rows."""
        self.positions.keep(partitions)
        if self.progress is not None:
            self.progress.keep(partitions)
        self.kept.own(frozenset(partitions))
        self.kept.undo()

    def start_over(self, partition: int) -> None:
        """Drop all state of the partition, so that its changelog is read from the start."""
        self.positions.start_over(partition)
        if self.progress is not None:
            self.progress.start_over(partition)
        self.kept.own(frozenset(range(self.partitions or 0)) - {partition})  # keeps all others
        try:
            self._on_disk.clear(self.changelog_topic_name, partition)
        except DataDirError as exc:
            self._halt(exc, f"{self.changelog_topic_name}[{partition}]")

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Note the position of memory in each changelog, and call the callbacks for the end of a recovery.

        An error in a callback stops the worker. Otherwise the worker would never become ready.
        """
        ends = cast(KeptRecovery, cast(Any, self.app.tables).recovery).active_highwaters
        for tp in active_tps:
            # A change that was made during the recovery may be based on older rows, and could not be undone later.
            clean = not self.kept.has_changes(tp.partition)
            self.positions.recovered(tp.partition, ends[tp] + 1, clean)
        try:
            await self.call_recover_callbacks()
        except Exception as exc:
            self._halt(exc, "after recovery")


class KeptRecovery(Recovery):
    """Reads changelogs up to the end marks that this worker writes to them when the recovery begins."""

    #: By changelog partition, the offset of the last record that memory included when the recovery began; -1 if none.
    _began: Mapping[TP, int] = MappingProxyType({})

    async def _build_highwaters(self, consumer: Any, tps: set[TP], destination: Any, title: str) -> None:
        """Write a mark to each changelog. The recovery ends at the offset of the mark.

        An end that the broker reports may be too low: it may lie before rows of a former owner.
        """
        assignments, tps = self._assignments(), set(tps)  # a copy, because Faust changes its set when partitions move
        by_changelog: dict[str, list[int]] = defaultdict(list)
        for tp in tps:
            by_changelog[tp.topic].append(tp.partition)
        destination.clear()
        if tps:
            mark = cast(KeptTable, self.tp_to_table[next(iter(tps))]).mark
            destination.update({TP(*place): offset for place, offset in (await mark(by_changelog)).items()})
        await self._leave_what_was_emptied(tps, assignments)
        for tp in tps:
            if cast(KeptTable, self.tp_to_table[tp]).positions.known(tp.partition) == destination[tp] + 1:
                self.active_offsets[tp] = destination[tp]  # no record lies between our position and the mark

    def _assignments(self) -> int:
        return int(cast(Any, self.app.transport).hot.assignments)

    def _require(self, assignments: int) -> None:
        """Raise `RebalanceAgain` if there were more than `assignments` assignments: another recovery follows."""
        if assignments != self._assignments():
            raise RebalanceAgain

    async def _leave_what_was_emptied(self, tps: set[TP], assignments: int) -> None:
        """Drop the state of changelogs that begin after our position, because records in between were deleted."""
        self._require(assignments)
        held = {tp: cast(KeptTable, self.tp_to_table[tp]).positions.known(tp.partition) for tp in tps}
        if not any(held.values()):
            return
        starts = await cast(Any, self.app.consumer)._earliest([tp for tp in tps if held[tp]])
        self._require(assignments)
        # Use `held`, the positions before the await, because rows written meanwhile lie after this recovery's mark.
        for tp, start in starts.items():
            if 0 < (held[tp] or 0) <= start + 1 and start:  # + 1, as `held` may include this recovery's mark
                log.warning(
                    "%s[%d]: it begins after the last offset that was read, and is read again", tp.topic, tp.partition
                )
                cast(KeptTable, self.tp_to_table[tp]).start_over(tp.partition)

    def _set_recovery_started(self) -> None:
        """Clear the signal that the last recovery has ended, because `_slurp_changelogs` leaves it set."""
        super()._set_recovery_started()
        self.signal_recovery_end.clear()

    async def _build_offsets(self, consumer: Any, tps: set[TP], destination: Any, title: str) -> None:
        """Start over with changelogs that end before our position, because they were recreated.

        Faust would wait forever for their records.
        """
        for tp in tps:
            table = cast(KeptTable, self.tp_to_table[tp])
            held = max(destination.get(tp) or -1, table.persisted_offset(tp) or -1)
            if held > self.active_highwaters.get(tp, -1):
                log.warning(
                    "%s[%d]: it ends before the last offset that was read, and is read again", tp.topic, tp.partition
                )
                table.start_over(tp.partition)
                destination[tp] = -1
        await super()._build_offsets(consumer, set(tps), destination, title)
        if title == "active":
            self._began = {tp: -1 if destination.get(tp) is None else destination[tp] for tp in tps}

    def read_of_all(self) -> dict[int, tuple[int, int]]:
        """Return, by partition, the number of changelog records read in this recovery, and the total number to read.

        Empty if no recovery is running.
        """
        found: dict[int, tuple[int, int]] = {}
        for tp, began in self._began.items() if self.in_recovery else ():
            done, of_all = found.get(tp.partition, (0, 0))
            here = max(0, self.active_highwaters.get(tp, began) - began)
            read = min(here, max(0, self.active_offsets.get(tp, began) - began))
            found[tp.partition] = done + read, of_all + here
        return found

    @Service.task
    async def _slurp_changelogs(self) -> None:
        """Apply each batch of changelog rows when it arrives. Skip the batches of earlier assignments.

        Faust would apply these batches as well.
        """
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
                self.signal_recovery_end.set()  # stays set, because a task may begin to wait later

    async def _wait(self, coro: Any, timeout: Any = None) -> None:
        """Start the recovery again if the broker does not answer in time.

        Faust would take the time-out for the end of the service, and end the recovery silently.
        """
        try:
            await super()._wait(coro, timeout)
        except ServiceStopped:
            if self.should_stop:
                raise
            log.warning("the broker did not answer for %g s: recovery of the tables starts over", timeout)
            self.signal_recovery_start.set()
            raise RebalanceAgain from None


class KeptTables(TableManager):
    """The tables of an app. All of them must be added before the app starts."""

    def __init__(self, app: Any, **kwargs: Any) -> None:
        super().__init__(app, **kwargs)
        # Set before Faust creates its own recovery. `loop` is not passed, because no event loop is running yet.
        self.kept_recovery = self._recovery = KeptRecovery(app, self, beacon=self.beacon)

    async def on_start(self) -> None:
        """Start the recovery at once. Faust would first sleep for a second, for tables that are declared late."""
        await self._update_channels()
        await self.recovery.start()
