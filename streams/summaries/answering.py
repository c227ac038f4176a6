"""Answers summary requests: settles requests that need no summary, and writes summaries for all other requests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Sequence
from datetime import date, datetime
from functools import partial

from schemas.errors import SummaryFilesError, SummaryNotWritten
from schemas.settings import SummaryPlan
from schemas.summary_requests import heading_of, request_in
from schemas.times import now_ms
from streams.kafka.event_log import EventLog
from streams.shards.owned import OwnedShards
from streams.summaries.drafts import Drafts
from streams.summaries.promotion import promoted
from streams.summaries.queue import Day, Group, PendingRequest
from streams.summaries.rules.drafting import Draft
from streams.summaries.rules.merging import day_merged
from streams.summaries.user_locks import UserLocks
from streams.telemetry.metrics import Metrics
from tables.memories.shard import Shard
from tables.summaries.day_files import Already, DayFiles
from tables.summaries.day_part import DayMerge
from tables.summaries.pending_summaries import Pending, PendingSummaries

log = logging.getLogger(__name__)


class Answering:
    """Answers groups of summary requests.

    A request is settled when its summary is in a file, when it needs no summary, or when it is stored for another
    try.
    """

    def __init__(
        self,
        *,
        plan: SummaryPlan,
        files: DayFiles,
        drafts: Drafts,
        users: UserLocks,
        pending: PendingSummaries,
        shards: OwnedShards,
        event_log: EventLog,
        metrics: Metrics,
    ) -> None:
        self._plan, self._files, self._drafts, self._users = plan, files, drafts, users
        self._pending, self._shards, self._event_log, self._metrics = pending, shards, event_log, metrics

    async def answer(self, groups: Sequence[Group], generation: int) -> None:
        """Answer the requests of these groups. Before that, answer failed requests of the same users for other days.

        `generation` is the number of the partition assignment in which the requests were read. After a new assignment
        nothing is settled, because the present owners read the requests again.
        """
        async with contextlib.AsyncExitStack() as locks:
            users = [self._users.of(user_id) for user_id in sorted({group.of.user_id for group in groups})]
            for user in users:
                await locks.enter_async_context(user.answering)
                user.begun = user.forgotten
            earlier, now = self._with_pending(groups)
            if not self._drafts.by_model:
                for several in filter(None, (earlier, now)):
                    await self._tried(several, generation)
                return
            for group in earlier:
                if not await self._tried([group], generation):
                    break
            for group in now:
                await self._tried([group], generation)

    def _with_pending(self, groups: Sequence[Group]) -> tuple[list[Group], list[Group]]:
        """Return groups of the users' failed requests for other days, and the given groups with further requests.

        The given groups get the failed requests for their own days. The other days are sorted, oldest day first.
        """
        earlier: dict[Day, list[PendingRequest]] = {}
        kept: dict[Day, list[PendingRequest]] = {group.of: [] for group in groups}
        for partition, user_id in dict.fromkeys((group.of.partition, group.of.user_id) for group in groups):
            for pending in self._pending.of_user(partition, user_id):
                heading = heading_of(pending.request)
                day = Day(partition, user_id, heading.day)
                of_day = kept[day] if day in kept else earlier.setdefault(day, [])
                of_day.append(PendingRequest(heading, pending.request.model_dump_json().encode(), pending.tries))
        return (
            [Group(day, tuple(asked)) for day, asked in earlier.items()],
            [group.after(kept[group.of]) for group in groups],
        )

    async def _tried(self, groups: Sequence[Group], generation: int) -> bool:
        """Try to answer the groups. Return False if a summary could not be made or written.

        The requests of a failed group are stored, and tried again together with the user's next request.
        """
        settled = True
        while groups:
            drafts = await self._drafts.of(await self._wanted(groups, generation))
            done = await asyncio.gather(*(self._written(group, draft, generation) for group, draft in drafts))
            settled &= all(outcome is not False for outcome in done)
            groups = [left for left in done if isinstance(left, Group)]
        return settled

    async def _wanted(self, groups: Sequence[Group], generation: int) -> list[Group]:
        """Settle requests that are already in a file, or that a forget command covers. Return the rest."""
        asked = [(group.of, one) for group in groups for one in group.asked]
        outcomes: dict[PendingRequest, str] = {}
        there = await asyncio.to_thread(self._runs, groups)
        for of, one in asked:
            if one.heading.run_id in there[of]:
                outcomes[one] = "repeated"
        for partition in {of.partition for of, _ in asked}:
            here = [one for of, one in asked if of.partition == partition]
            headings = [(one.heading.user_id, one.heading.run_id, one.heading.newest) for one in here]
            gone = await self._shards.call(partition, Shard.forgotten, headings)
            for one, forgotten in zip(here, gone, strict=True):
                if forgotten:
                    outcomes.setdefault(one, "forgotten")
        for group in groups:
            for one in group.asked:
                if one in outcomes:
                    self._settle(group.of, one, outcomes[one], generation)
        left = [group.only(one for one in group.asked if one not in outcomes) for group in groups]
        return [group for group in left if group.asked]

    def _runs(self, groups: Sequence[Group]) -> dict[Day, frozenset[uuid.UUID]]:
        """Return, for each day, the runs in its summary file. A file that cannot be read counts as empty."""
        there = {}
        for group in groups:
            try:
                there[group.of] = frozenset(self._files.runs(group.of.user_id, group.of.day))
            except SummaryFilesError as exc:
                log.warning("%s", exc)
                there[group.of] = frozenset()
        return there

    async def _written(self, group: Group, draft: Draft | None, generation: int) -> bool | Group:
        """Write the draft and settle the requests. Return False if they are stored for another try, otherwise True.

        If another process has answered some of the requests in the meantime, the draft is not written. The remaining
        requests need a summary of their own, so their group is returned.
        """
        user = self._users.of(group.of.user_id)
        async with user.writing:
            if user.forgotten != user.begun:  # a forget command has arrived: the draft may contain forgotten text
                outcome: str | frozenset[uuid.UUID] = "forgotten"
            else:
                outcome = await self._outcome(group, draft)
            if isinstance(outcome, str):
                self._settle_all(group, draft, outcome, generation)
                return outcome != "failed"
        for one in group.asked:
            if one.heading.run_id in outcome:
                self._settle(group.of, one, "repeated", generation)
        return group.only(one for one in group.asked if one.heading.run_id not in outcome)

    def _settle_all(self, group: Group, draft: Draft | None, outcome: str, generation: int) -> None:
        if draft is not None and outcome.startswith("written"):
            self._metrics.summaries_left_out.inc(draft.left_out)
        first, *others = group.asked
        self._settle(group.of, first, outcome, generation)
        for one in others:
            self._settle(group.of, one, "coalesced" if outcome.startswith("written") else outcome, generation)

    async def _outcome(self, group: Group, draft: Draft | None) -> str | frozenset[uuid.UUID]:
        """Write the summary and return the outcome.

        If the file already contains one of the requests, write nothing and return the runs that the file contains.
        """
        if draft is None:
            return "failed"
        if not draft.text:
            return "empty"
        if self._plan.promote:  # promote first: if writing fails, a second promotion of the same items has no effect
            for event in promoted(group, draft):
                await self._event_log.send(event)
        of, (first, *others) = group.of, [one.heading.run_id for one in group.asked]
        try:
            place = await asyncio.to_thread(
                self._files.append,
                of.user_id,
                of.day,
                first,
                draft.text,
                datetime.now(self._plan.timezone),
                others=others,
                merge=self._merge(group),
            )
        except SummaryNotWritten as exc:
            log.error("%s", exc)
            return "failed"
        if isinstance(place, Already):
            return place.runs
        if place.instead_of is None:
            return "written"
        wanted = place.instead_of
        log.warning("a summary was written to %s: %s is not writable (%s)", place.path, wanted.path, wanted.reason)
        return "written_elsewhere"

    def _merge(self, group: Group) -> DayMerge | None:
        """Return how the file's part that sums up the whole day is made; None if the settings want none."""
        if not self._plan.merge_at_day_end:
            return None
        return DayMerge(
            partial(_day_merged, plan=self._plan, day=group.of.day),
            day_over=any(one.heading.reason == "day_end" for one in group.asked),
        )

    def _settle(self, of: Day, one: PendingRequest, outcome: str, generation: int) -> None:
        if generation != self._pending.generation:  # the request is read again, even if it is in its file already
            one.leave()
            return
        self._metrics.summaries.labels(outcome).inc()
        if len(one.batches) > 1:  # the request was delivered again while it was waiting
            self._metrics.summaries.labels("repeated").inc(len(one.batches) - 1)
        if outcome == "failed":
            for given_up in self._pending.keep(of.partition, Pending(request_in(one.raw), one.tries + 1)):
                log.error(
                    "a summary of %s is given up: too many of this user's summaries wait", given_up.request.date
                )
        else:
            self._pending.drop(of.partition, of.user_id, one.heading.run_id)
        one.answered()


def _day_merged(texts: Sequence[str], *, plan: SummaryPlan, day: date) -> str | None:
    """Merge the summaries of a day. If that fails, log it and return None: the new summary is written in any case."""
    try:
        return day_merged(texts, language=plan.language, written_at=now_ms(), timezone=plan.timezone, day=day)
    except Exception as exc:  # only its type is logged, because its text may quote a summary
        log.error("the summaries of a day cannot be merged: %s", type(exc).__name__)
        return None
