"""Answers the requests of the topic `summary-requests` with summaries in daily Markdown files.

A request contains its messages, so that it can be answered even if the window has changed in the meantime. Requests
wait in a queue by user and day, so they do not hold up conversations. All waiting requests for the same day,
including failed ones, are answered by one summary, which names the run of each request. The offset of a request is
acknowledged when its summary is in a file, or when the request is stored for another try.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from schemas.errors import ShardNotHere, SummaryFilesError
from schemas.settings import MemorySettings, SummaryPlan
from schemas.summary_requests import Heading
from schemas.times import now_ms
from streams.intake.rules.exchanges import Limits
from streams.kafka.event_log import EventLog
from streams.kafka.inbox import Inbox
from streams.runtime.backlog_gate import LOOK_AGAIN_SECONDS, BacklogGate
from streams.runtime.clock import ingested
from streams.runtime.ending import ended
from streams.shards.owned import OwnedShards
from streams.summaries.answering import Answering
from streams.summaries.drafts import Drafts, Extraction, Summariser
from streams.summaries.queue import Group, RequestBatch, WaitingSummaries
from streams.summaries.user_locks import UserLocks
from streams.telemetry.metrics import Metrics
from tables.summaries.day_files import DayFiles
from tables.summaries.pending_summaries import PendingSummaries

log = logging.getLogger(__name__)

#: Maximum number of days that are summed up at a time if no model is configured.
DAYS_AT_A_TIME = 16
#: The maximum number of bytes of waiting requests. While more are waiting, no more records of the topic are read.
MOST_WAITING_BYTES = 64 * 1024 * 1024
#: If more `long-term` events than this are unprocessed, summaries wait until the worker has processed them.
BACKLOG = 100
GIVE_WAY_SECONDS = 10.0


class SummariesAgent:
    """Answers requests for summaries: with a model if one is configured, else with extracts from the messages."""

    def __init__(
        self,
        *,
        plan: SummaryPlan,
        folder: Path,
        summariser: Summariser | None,
        extraction: Extraction,
        memory: MemorySettings,
        pending: PendingSummaries,
        shards: OwnedShards,
        event_log: EventLog,
        inbox: Inbox[Heading],
        metrics: Metrics,
        gate: BacklogGate,
        backlog: Callable[[], int],
    ) -> None:
        self.plan, self.files = plan, DayFiles(folder, plan.fallback_dir)
        self._drafts, self._users = Drafts(plan, summariser, extraction, Limits.of(memory)), UserLocks()
        self._answering = Answering(
            plan=plan,
            files=self.files,
            drafts=self._drafts,
            users=self._users,
            pending=pending,
            shards=shards,
            event_log=event_log,
            metrics=metrics,
        )
        self._pending, self._inbox, self._metrics = pending, inbox, metrics
        self._gate, self._backlog = gate, backlog
        self._waiting, self._generation = WaitingSummaries(), pending.generation
        self._some, self._room = asyncio.Event(), asyncio.Event()
        self._before_giving_way = 0
        self._at_work: list[asyncio.Task[None]] = []

    async def handle(self, partition: int, records: Sequence[Any]) -> asyncio.Future[None] | None:
        """Queue the summary requests of one fetched batch of a partition.

        Return a future that is done when all these requests are answered, or None if the batch has no request.
        """
        requests = list(self._inbox.read(records))
        if not requests:
            return None
        self._leave_former()
        batch, now = RequestBatch(len(requests)), now_ms()
        for record, heading in requests:
            # The messages are older than the request, even if they have later timestamps.
            newest = min(heading.newest, ingested(record.timestamp, now))
            self._waiting.add(partition, heading._replace(newest=newest), record.value, batch)
        self._metrics.summaries_waiting.set(len(self._waiting))
        self._begin()
        while self._waiting.size > MOST_WAITING_BYTES:
            self._room.clear()
            await self._room.wait()
        return batch.done

    async def forget_user(self, partition: int, user_id: str) -> None:
        """Remove the user's summary files and failed requests. A summary that is being made meanwhile is not written.

        If a file cannot be removed, an error is logged, and `sweep` tries again later. So this file does not block
        the requests of other users.
        """
        user = self._users.of(user_id)
        user.forgotten += 1
        async with user.writing:
            for pending in self._pending.of_user(partition, user_id):
                self._pending.drop(partition, user_id, pending.request.run_id)
            await self._remove_files(user_id, None)

    async def forget_earlier(self, user_id: str, until: int) -> None:
        """Apply a `forget_user` command with the time `until` (epoch ms) that is read from the log once more.

        Remove this worker's files of the user that are not newer than the command.
        """
        async with self._users.of(user_id).writing:
            await self._remove_files(user_id, until)

    async def _remove_files(self, user_id: str, until: int | None) -> None:
        try:
            await asyncio.to_thread(self.files.forget, user_id, until)
        except SummaryFilesError as exc:
            log.error("%s", exc)
            self._metrics.forgotten_folders.set(len(exc.unusable))

    async def sweep(self) -> None:
        """Try again to remove the files of forgotten users that could not be removed before."""
        unusable = await asyncio.to_thread(self.files.sweep)
        self._metrics.forgotten_folders.set(len(unusable))
        for one in unusable:
            log.error("files of a forgotten user cannot be removed: %s", one)

    async def stop(self) -> None:
        """Stop answering, and end the extraction process. Unanswered requests are read again after the next start."""
        await ended(self._at_work)
        self._waiting.leave()
        await self._drafts.close()

    # Scheduling: the order of the answers, and the number of answers at a time

    def _begin(self) -> None:
        """Wake the tasks that answer waiting requests; the first call starts them."""
        self._some.set()
        if not self._at_work:
            places, days = (self._concurrency, 1) if self._drafts.by_model else (1, DAYS_AT_A_TIME)
            self._at_work = [asyncio.create_task(self._work(days)) for _ in range(places)]

    @property
    def _concurrency(self) -> int:
        return 1 if self.plan.model is None else self.plan.model.concurrency

    async def _work(self, days: int) -> None:
        """Answer waiting requests, for up to `days` days at a time, until the task is cancelled."""
        while True:
            await self._some.wait()
            await self._let_others_first()
            self._leave_former()
            groups = self._waiting.take(days)
            self._before_giving_way -= len(groups)
            self._metrics.summaries_waiting.set(len(self._waiting))
            if not len(self._waiting):
                self._some.clear()
            if self._waiting.size <= MOST_WAITING_BYTES:
                self._room.set()
            try:
                if groups:
                    await self._answering.answer(groups, self._generation)
            except ShardNotHere as exc:  # the partition's next owner reads the requests again
                log.info("summaries are left to the next owner: %s", exc)
                _leave(groups)
            except asyncio.CancelledError:
                _leave(groups)
                raise
            except Exception as exc:
                for group in groups:
                    for one in group.asked:
                        for batch in one.batches:
                            batch.fail(exc)

    async def _let_others_first(self) -> None:
        """Wait while backlogs of messages and `long-term` events are processed, unless a person waits.

        There is one pause, of limited length, for all requests that are waiting now. Requests for the same days that
        arrive during the pause are answered by the same summaries.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + GIVE_WAY_SECONDS
        while len(self._waiting) and not self._waiting.urgent and self._before_giving_way <= 0:
            if not self._gate.must_wait() and (self._backlog() <= BACKLOG or loop.time() >= until):
                self._before_giving_way = len(self._waiting)
            else:
                await asyncio.sleep(LOOK_AGAIN_SECONDS)

    def _leave_former(self) -> None:
        """Drop the requests that were read before a reassignment, because the present owners read them again."""
        if self._generation != self._pending.generation:
            self._generation = self._pending.generation
            self._waiting.leave()


def _leave(groups: Sequence[Group]) -> None:
    for group in groups:
        for one in group.asked:
            one.leave()
