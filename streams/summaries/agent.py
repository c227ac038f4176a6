"""summary-requests → daily Markdown files.

A request carries its messages, so that it can be answered even if the window has changed since. Requests wait by
user and day, outside the conversation stream. Those that wait for the same day, including earlier failed ones, become
one summary, which names each run. An offset is acknowledged when its request is in a file, or kept for another try.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

from schemas.errors import ShardNotHere, SummaryFilesError, SummaryNotWritten
from schemas.events import Remember
from schemas.ids import SILTSTONE, event_id
from schemas.settings import MemorySettings, SummaryPlan
from schemas.summaries import Summary
from schemas.summary_requests import Heading, heading_of, request_in
from schemas.times import now_ms
from streams.intake.rules.exchanges import Limits
from streams.kafka.event_log import EventLog
from streams.kafka.inbox import Inbox
from streams.runtime.backlog_gate import LOOK_AGAIN_SECONDS, BacklogGate
from streams.runtime.clock import ingested
from streams.runtime.ending import ended
from streams.shards.owned import OwnedShards
from streams.summaries.queue import Day, Group, PendingRequest, RequestBatch, WaitingSummaries
from streams.summaries.requests import request_of, summary_request
from streams.summaries.rules import Turn, grounded
from streams.summaries.rules.drafting import Draft, Order, read, written
from streams.summaries.summariser import Malformed, Unavailable
from streams.telemetry.metrics import Metrics
from tables.memories.shard import Shard
from tables.summaries.day_files import Already, DayFiles
from tables.summaries.pending_summaries import Pending, PendingSummaries

__all__ = ["SummariesAgent", "request_of", "summary_request"]

log = logging.getLogger(__name__)

#: After this many failed tries, a summary is made without the model.
MOST_TRIES = 3
#: Days that are summed up at a time when no model is configured.
DAYS_AT_A_TIME = 16
#: Limit for waiting records; beyond it, their topic is not read further.
MOST_WAITING_BYTES = 64 * 1024 * 1024
#: Unprocessed events of `long-term`. Up to this number, their delay is short, and summaries go on.
BACKLOG = 100
GIVE_WAY_SECONDS = 10.0
#: A preference or decision is worth remembering, but less than an explicit request to remember.
PROMOTED_IMPORTANCE = 75.0


class Summariser(Protocol):
    """Sums up a day with a model."""

    async def summarise(self, turns: Sequence[Turn], date: str) -> Summary | Malformed | Unavailable: ...


class Extraction(Protocol):
    """Sums up days without a model. A draft is None if it could not be made and may be tried again."""

    async def drafted(self, orders: Sequence[Order]) -> list[Draft | None]: ...

    async def close(self) -> None: ...


@dataclass(slots=True, eq=False, weakref_slot=True)
class _User:
    """A user's locks: requests are answered one after the other, and none while the user is being forgotten.

    `answering` is held while a model is asked, `writing` only while a file is written or removed; forgetting waits
    only for `writing`. `forgotten` counts the forget commands; `begun` is its value when answering began.
    """

    answering: asyncio.Lock = field(default_factory=asyncio.Lock)
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    forgotten: int = 0
    begun: int = 0


class SummariesAgent:
    """Answers requests: with a model if one is configured, else with extracts from the messages."""

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
        self._summariser, self._extraction, self._limits = summariser, extraction, Limits.of(memory)
        self._pending, self._shards, self._event_log = pending, shards, event_log
        self._inbox, self._metrics = inbox, metrics
        self._gate, self._backlog = gate, backlog
        self._users: WeakValueDictionary[str, _User] = WeakValueDictionary()
        self._waiting, self._generation = WaitingSummaries(), pending.generation
        self._some, self._room = asyncio.Event(), asyncio.Event()
        self._before_giving_way = 0
        self._at_work: list[asyncio.Task[None]] = []

    async def handle(self, partition: int, records: Sequence[Any]) -> asyncio.Future[None] | None:
        """Queue one fetched batch of a partition; the batch is processed when the future is done."""
        requests = list(self._inbox.read(records))
        if not requests:
            return None
        self._leave_former()
        batch, now = RequestBatch(len(requests)), now_ms()
        for record, heading in requests:
            # Its messages were said before the request, even if they are dated later.
            newest = min(heading.newest, ingested(record.timestamp, now))
            self._waiting.add(partition, heading._replace(newest=newest), record.value, batch)
        self._metrics.summaries_waiting.set(len(self._waiting))
        self._begin()
        while self._waiting.size > MOST_WAITING_BYTES:
            self._room.clear()
            await self._room.wait()
        return batch.done

    async def forget_user(self, partition: int, user_id: str) -> None:
        """Remove the user's files and pending requests. A summary that a model is making meanwhile is not written.

        A file that cannot be removed is reported, and `sweep` tries again, so it does not block other users.
        """
        user = self._of_user(user_id)
        user.forgotten += 1
        async with user.writing:
            for pending in self._pending.of_user(partition, user_id):
                self._pending.drop(partition, user_id, pending.request.run_id)
            await self._remove_files(user_id, None)

    async def forget_earlier(self, user_id: str, until: int) -> None:
        """Apply an old `forget_user` from time `until` (epoch ms): remove the files here that are not newer."""
        async with self._of_user(user_id).writing:
            await self._remove_files(user_id, until)

    async def _remove_files(self, user_id: str, until: int | None) -> None:
        try:
            await asyncio.to_thread(self.files.forget, user_id, until)
        except SummaryFilesError as exc:
            log.error("%s", exc)
            self._metrics.forgotten_folders.set(len(exc.unusable))

    async def sweep(self) -> None:
        """Remove the remaining files of forgotten users."""
        unusable = await asyncio.to_thread(self.files.sweep)
        self._metrics.forgotten_folders.set(len(unusable))
        for one in unusable:
            log.error("files of a forgotten user cannot be removed: %s", one)

    async def stop(self) -> None:
        """Stop answering, and end the process. Unanswered requests are read again after the next start."""
        await ended(self._at_work)
        self._waiting.leave()
        await self._extraction.close()

    # When, and how many at a time

    def _begin(self) -> None:
        """Wake the tasks that answer waiting requests; the first call starts them."""
        self._some.set()
        if not self._at_work:
            places, days = (1, DAYS_AT_A_TIME) if self._summariser is None else (self._concurrency, 1)
            self._at_work = [asyncio.create_task(self._work(days)) for _ in range(places)]

    @property
    def _concurrency(self) -> int:
        return 1 if self.plan.model is None else self.plan.model.concurrency

    async def _work(self, days: int) -> None:
        """Answer up to `days` days at a time, until the task is cancelled."""
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
                    await self._answer(groups)
            except ShardNotHere as exc:  # the next owner reads the requests
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
        """Wait for backlogs of messages and of `long-term` events, unless a person waits for a summary.

        All requests that wait now share one pause, and the pause is bounded. Requests for the same days that arrive
        meanwhile are answered with them.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + GIVE_WAY_SECONDS
        while len(self._waiting) and not self._waiting.urgent and self._before_giving_way <= 0:
            if not self._gate.must_wait() and (self._backlog() <= BACKLOG or loop.time() >= until):
                self._before_giving_way = len(self._waiting)
            else:
                await asyncio.sleep(LOOK_AGAIN_SECONDS)

    def _leave_former(self) -> None:
        """Drop requests that were read before a reassignment: the present owners read them again."""
        if self._generation != self._pending.generation:
            self._generation = self._pending.generation
            self._waiting.leave()

    def _of_user(self, user_id: str) -> _User:
        user = self._users.get(user_id)
        if user is None:
            user = self._users[user_id] = _User()
        return user

    # Answering

    async def _answer(self, groups: Sequence[Group]) -> None:
        """Answer these days, but first other days of their users that failed before."""
        generation = self._generation
        async with contextlib.AsyncExitStack() as locks:
            users = [self._of_user(user_id) for user_id in sorted({group.of.user_id for group in groups})]
            for user in users:
                await locks.enter_async_context(user.answering)
                user.begun = user.forgotten
            earlier, now = self._with_pending(groups)
            if self._summariser is None:
                for several in filter(None, (earlier, now)):
                    await self._tried(several, generation)
                return
            for group in earlier:
                if not await self._tried([group], generation):
                    break
            for group in now:
                await self._tried([group], generation)

    def _with_pending(self, groups: Sequence[Group]) -> tuple[list[Group], list[Group]]:
        """Return earlier failed days of these users, oldest first, and the groups with their own failed requests."""
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
        """Try the groups; True if all are settled. Others are kept, and tried again with the user's next request."""
        wanted = await self._wanted(groups, generation)
        drafts = await self._drafts(wanted, generation)
        done = await asyncio.gather(*(self._written(group, draft, generation) for group, draft in drafts))
        return all(done)

    async def _wanted(self, groups: Sequence[Group], generation: int) -> list[Group]:
        """Settle requests that are in a file already, or whose user is forgotten; return the others."""
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
        """The runs in the days' files. An unreadable file counts as empty: it is not written to either."""
        there = {}
        for group in groups:
            try:
                there[group.of] = frozenset(self.files.runs(group.of.user_id, group.of.day))
            except SummaryFilesError as exc:
                log.warning("%s", exc)
                there[group.of] = frozenset()
        return there

    async def _drafts(self, groups: Sequence[Group], generation: int) -> list[tuple[Group, Draft | None]]:
        """Each group with its summary, or None if it cannot be made now."""
        if self._summariser is None:
            return await self._extracted(groups)
        drafts: list[tuple[Group, Draft | None]] = []
        for group in groups:
            drafts += await self._asked_for(self._summariser, group)
        return drafts

    async def _asked_for(self, summariser: Summariser, group: Group) -> list[tuple[Group, Draft | None]]:
        """Ask the model. If it is unavailable, sum up without it those requests that were tried often enough."""
        order, date = self._order_of(group), group.of.day.isoformat()
        found = await asyncio.to_thread(read, order)
        answer = await summariser.summarise(found.turns, date)
        if isinstance(answer, Summary):
            return [(group, await asyncio.to_thread(written, grounded(answer, found.turns), found, order))]
        drafts: list[tuple[Group, Draft | None]] = []
        if isinstance(answer, Unavailable):
            patient = group.only(one for one in group.asked if one.tries + 1 < MOST_TRIES)
            group = group.only(one for one in group.asked if one.tries + 1 >= MOST_TRIES)
            drafts += [(patient, None)] if patient.asked else []
        if group.asked:
            log.warning("a summary of %s is made without the model", date)
            drafts += await self._extracted([group])
        return drafts

    async def _extracted(self, groups: Sequence[Group]) -> list[tuple[Group, Draft | None]]:
        """Sum up without a model. If a group fails, try each of its requests alone."""
        drafts = await self._extraction.drafted([self._order_of(group) for group in groups]) if groups else []
        made: list[tuple[Group, Draft | None]] = []
        for group, draft in zip(groups, drafts, strict=True):
            if draft is None and len(group.asked) > 1:
                made += await self._extracted([group.only([one]) for one in group.asked])
            else:
                made.append((group, draft))
        return made

    def _order_of(self, group: Group) -> Order:
        return Order(
            requests=tuple(one.raw for one in group.asked),
            limits=self._limits,
            language=self.plan.language,
            timezone=self.plan.timezone,
            reason=group.reason,
            written_at=now_ms(),
        )

    # Writing

    async def _written(self, group: Group, draft: Draft | None, generation: int) -> bool:
        """Write the draft; True if the group is settled."""
        user = self._of_user(group.of.user_id)
        async with user.writing:
            if user.forgotten != user.begun:  # a forget command came meanwhile: the text may hold forgotten words
                outcome: str | frozenset[uuid.UUID] = "forgotten"
            else:
                outcome = await self._outcome(group, draft)
            if isinstance(outcome, str):
                self._settle_all(group, draft, outcome, generation)
                return outcome != "failed"
        # Another process has answered some of the requests meanwhile: the others get their own summary.
        for one in group.asked:
            if one.heading.run_id in outcome:
                self._settle(group.of, one, "repeated", generation)
        others = group.only(one for one in group.asked if one.heading.run_id not in outcome)
        return await self._tried([others], generation)

    def _settle_all(self, group: Group, draft: Draft | None, outcome: str, generation: int) -> None:
        if draft is not None and outcome.startswith("written"):
            self._metrics.summaries_left_out.inc(draft.left_out)
        first, *others = group.asked
        self._settle(group.of, first, outcome, generation)
        for one in others:
            self._settle(group.of, one, "coalesced" if outcome.startswith("written") else outcome, generation)

    async def _outcome(self, group: Group, draft: Draft | None) -> str | frozenset[uuid.UUID]:
        """Write the summary and return the outcome, or the file's runs if it already has one of the requests."""
        if draft is None:
            return "failed"
        if not draft.text:
            return "empty"
        if self.plan.promote:  # first: if writing fails, promoting the same items again has no effect
            await self._promote(group, draft)
        of, (first, *others) = group.of, [one.heading.run_id for one in group.asked]
        try:
            place = await asyncio.to_thread(
                self.files.append,
                of.user_id,
                of.day,
                first,
                draft.text,
                datetime.now(self.plan.timezone),
                others=others,
            )
        except SummaryNotWritten as exc:
            log.error("%s", exc)
            return "failed"
        if isinstance(place, Already):
            return place.runs
        if place.instead_of is None:
            return "written"
        wanted = place.instead_of
        log.warning("a summary is in %s: %s cannot be written to (%s)", place.path, wanted.path, wanted.reason)
        return "written_elsewhere"

    def _settle(self, of: Day, one: PendingRequest, outcome: str, generation: int) -> None:
        if generation != self._pending.generation:  # the request is read again, and found if it is in its file
            one.leave()
            return
        self._metrics.summaries.labels(outcome).inc()
        if len(one.batches) > 1:  # delivered again while it waited
            self._metrics.summaries.labels("repeated").inc(len(one.batches) - 1)
        if outcome == "failed":
            for given_up in self._pending.keep(of.partition, Pending(request_in(one.raw), one.tries + 1)):
                log.error("a summary of %s is given up: too many of its user wait", given_up.request.date)
        else:
            self._pending.drop(of.partition, of.user_id, one.heading.run_id)
        one.answered()

    async def _promote(self, group: Group, draft: Draft) -> None:
        """Promote preferences and decisions to long-term memories of kind `summary_item`."""
        newest, user_id = max(one.heading.newest for one in group.asked), group.of.user_id
        for item in draft.items:
            identity = uuid.uuid5(SILTSTONE, f"summary_item/{user_id}/{','.join(item.sources)}/{item.text}")
            event = Remember(
                event_id=event_id("summary_item", identity),
                user_id=user_id,
                timestamp=newest,
                memory_id=identity,
                text=item.text,
                importance=PROMOTED_IMPORTANCE,
                origin="summary_item",
                message_ids=list(item.sources),
                metadata={"date": group.of.day.isoformat()},
            )
            await self._event_log.send(event)


def _leave(groups: Sequence[Group]) -> None:
    for group in groups:
        for one in group.asked:
            one.leave()
