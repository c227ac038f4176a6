"""After an assignment, seeks each partition to the first offset that must be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from aiokafka.errors import IllegalStateError
from faust.types import TP

from streams.kafka.faust.consumer_state import ConsumerState
from streams.kafka.faust.threads import ConsumerThread


class Seeking(ConsumerState):
    """Overrides `perform_seek`, which Faust calls after an assignment, and `seek_wait`, which seeks changelogs."""

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Note the offsets at which a recovery begins to read changelogs.

        A fetch in flight may bring rows before the flow resumes. Faust drops these rows, and would then wait for them
        forever. `Fetching` seeks back to the noted offsets and reads them again.
        """
        self._restored_from, self._recoveries = dict(partitions), self._recoveries + 1
        await super().seek_wait(partitions)

    async def perform_seek(self) -> None:
        """Stop the flow of records, and then seek. Partitions without a committed offset are read from their start.

        Faust resumes the partitions before the seek. Without the stop, it would fetch their records before the seek
        is complete, and drop them.
        """
        if self.flow_active:
            self.stop_flow()  # the recovery resumes the flow right after the seek
        await self._seek_to_start()

    async def _seek_to_start(self) -> None:
        self._seeks += 1
        assignments = self._hot.assignments
        self._hot.forget_readable()
        self._expected.clear()
        self._ledgers.clear()
        self.sought.clear()
        self.from_start.clear()
        ours = {TP(*tp) for tp in self.assignment()}
        for tp in ours:
            self._committed_offset.pop(tp, None)  # Faust's `perform_seek` keeps the old value if there is no commit
        await super().perform_seek()
        self._require(assignments)
        thread = cast(ConsumerThread, self._thread)
        for tp in ours:
            if tp.topic in self._hot.started_over and tp not in thread.committed:
                self._committed_offset.pop(tp, None)
                thread.known.pop(tp, None)
        uncommitted = [
            tp for tp in self.assignment() if not self._committed_offset.get(tp) and not self._is_changelog_tp(tp)
        ]
        expected = {tp: offset for tp, offset in self._committed_offset.items() if offset and tp in ours}
        # If an operator has set an offset back, the records from there on count as new again.
        for tp in (*uncommitted, *thread.others):
            self._hot.start_over(TP(*tp))
        # Faust's `perform_seek` has not moved the partitions without a committed offset.
        if uncommitted:
            starts = await self.earliest_offsets(*uncommitted)
            self._require(assignments)
            for tp, offset in starts.items():
                expected[TP(*tp)] = offset
                self._thread.seek(tp, offset)
                self._read_offset[TP(*tp)] = None
                if offset == 0:
                    self.from_start.add(TP(*tp))
        for tp, offset in expected.items():
            if tp.topic in self._hot.topics:
                self._ledgers[tp].begin(offset)
                self._expected[tp] = offset
        # `ours` lacks partitions that were assigned during the seek, because their committed offset is unknown.
        self.sought = ours
        for call in self._hot.on_seek:
            await call()

    def _require(self, assignments: int) -> None:
        """Raise `IllegalStateError` if there were more than `assignments` assignments: another seek follows."""
        if assignments != self._hot.assignments:
            raise IllegalStateError("partitions were assigned meanwhile")

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Drop the ledgers of revoked partitions, because this worker must not commit their batches."""
        self._hot.forget_readable()
        await super().on_partitions_revoked(revoked)
        for tp in revoked:
            self._ledgers.pop(tp, None)
            self._expected.pop(tp, None)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Drop all ledgers, because their offsets are not valid in the new assignment."""
        self._hot.assignments += 1
        self._hot.forget_readable()
        self._ledgers.clear()
        self._expected.clear()
        await super().on_partitions_assigned(assigned, generation_id)
