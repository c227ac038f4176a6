"""Commits an offset only when the effects of all records before it are acknowledged."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import cast

from faust.types import TP

from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.faust.consumer_state import ConsumerState
from streams.kafka.faust.threads import ConsumerThread

log = logging.getLogger(__name__)

#: The reasons of a failed attempt to commit. After `NO_MEMBER`, nothing was written. After `NOT_TAKEN`, all effects
#: were written, but not the offsets.
NO_MEMBER = "the group no longer knows this worker, or does not answer"
NOT_TAKEN = "the group does not accept the offsets"


class Committing(ConsumerState):
    """Overrides `_commit_offsets`, which Faust calls for each commit, so that the effects are written first."""

    async def _commit_offsets(self, offsets: Mapping[TP, int], start_new_transaction: bool = True) -> bool:
        """Commit the offsets after their effects: ask the group whether we are a member, flush the outbox, commit.

        A worker that was paused may have rows that the next owner of its partitions has replaced. So it must not
        flush them if it is no longer a member.
        """
        if self._hot.halted:
            return False
        try:
            return await self._flushed_and_committed(offsets, start_new_transaction)
        except NOT_ALLOWED as exc:
            self._hot.halt(exc, "a commit")
            return False

    async def _flushed_and_committed(self, offsets: Mapping[TP, int], start_new_transaction: bool) -> bool:
        attempts = self._hot.attempts
        attempts.begin()
        ledgers = {tp: self._ledgers[tp] for tp in offsets}
        # If we are not a member, our partitions have a new owner, and our older rows must not overwrite its rows.
        if not await self._thread.call_thread(cast(ConsumerThread, self._thread).is_member):
            attempts.fail(NO_MEMBER)
            log.warning("nothing committed: %s", NO_MEMBER)
            return False
        if not await self._hot.outbox.flush():
            attempts.fail(self._hot.outbox.failure)
            return False
        if not await self._is_still_the_same_log(self._hot.before_commit):
            return False
        # Leave out partitions that were assigned or sought during the flush: their changes were undone, and their
        # records are read again.
        offsets = {tp: offset for tp, offset in offsets.items() if self._ledgers.get(tp) is ledgers[tp]}
        if took := await super()._commit_offsets(offsets, start_new_transaction):
            attempts.succeed()
        else:
            attempts.fail(NOT_TAKEN)
        known = cast(ConsumerThread, self._thread).known
        self._committed_offset.update({tp: known.get(tp) for tp in offsets if tp in self._committed_offset})
        return took
