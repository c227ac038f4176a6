"""summary-requests → daily Markdown files.

A request carries its messages, so that it can be answered whatever has become of the window since. It is answered
beside the conversation: one user's requests in their order, those of several users at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

import orjson
from pydantic import ValidationError

from schemas.errors import BadRecord, SummaryNotWritten
from schemas.events import Remember, SummaryRequest, event_id
from schemas.messages import SILTSTONE, Message
from schemas.settings import MemorySettings, SummaryPlan
from schemas.summaries import Decision, Preference, Summary
from schemas.topics import Topics, key_of
from streams.clients.summariser import Malformed, Unavailable
from streams.clock import now_ms
from streams.dead_letters import DeadLetters, invalid, json_object
from streams.hotpath import Outbox
from streams.metrics import Metrics
from streams.precedence import LOOK_AGAIN_SECONDS, IntakeFirst
from streams.rerouting import Rerouting
from streams.rules.exchanges import Limits
from streams.rules.summary import Turn, extracted, grounded, language_of, rendered, turns_of
from streams.rules.summary.triggers import Reason, Wanted
from streams.shards import OwnedShards
from tables.notes import Already, DayFiles
from tables.pending_summaries import Pending, PendingSummaries
from tables.shard import Shard
from tables.short_term import Session

log = logging.getLogger(__name__)

#: After so many times in vain, a summary is made without the model.
MOST_TRIES = 3
#: Requests that are decoded and worked on at a time.
REQUESTS_AT_A_TIME = 16
#: Events of `long-term` that are not yet processed; with fewer, nobody waits long.
BACKLOG = 100
GIVE_WAY_SECONDS = 10.0
#: All texts of a request, in characters; each message of a longer day is cut to its share.
REQUEST_CHARS = 1_000_000
#: A preference or decision is worth remembering, and less than what the user asked to remember.
PROMOTED_IMPORTANCE = 75.0


class Summariser(Protocol):
    """What sums up with a model."""

    async def summarise(self, turns: Sequence[Turn], date: str) -> Summary | Malformed | Unavailable: ...


def decode(record: Any) -> SummaryRequest:
    """A record of `summary-requests`. Raises `BadRecord`."""
    try:
        request = SummaryRequest.model_validate(json_object(record.value))
        date.fromisoformat(request.date)
    except ValidationError as exc:
        raise invalid(exc) from exc
    except ValueError as exc:
        raise BadRecord("invalid", f"date: {exc}") from exc
    return request


def request_of(session: Session, wanted: Wanted, others: Iterable[tuple[str, Message]] = ()) -> bytes:
    """The record that asks for what the rules want of a session, with messages of the user's `others`.

    The same always has the same run id.
    """
    basis = f"{session.user_id}/{session.session_id}/{wanted.reason}/{wanted.day}/{wanted.by}"
    said = [*((session.session_id, message) for message in wanted.messages), *others]
    run_id = uuid.uuid5(SILTSTONE, f"summary/{basis}")
    return _record(run_id, session.user_id, wanted.day, wanted.reason, said)


def summary_request(
    run_id: uuid.UUID, user_id: str, day: date, reason: Reason, said: Sequence[tuple[str, Message]]
) -> SummaryRequest:
    """A request with these messages, (session, message) each; long ones are cut where the day would be too long."""
    return SummaryRequest.model_validate_json(_record(run_id, user_id, day, reason, said))


def _record(run_id: uuid.UUID, user_id: str, day: date, reason: Reason, said: Sequence[tuple[str, Message]]) -> bytes:
    """Without a model of each message: one message in ten has a dozen of them copied."""
    chars = sum(len(message.content) for _, message in said)
    each = REQUEST_CHARS // len(said) if chars > REQUEST_CHARS else chars
    return orjson.dumps(
        {
            "run_id": run_id,
            "user_id": user_id,
            "date": day.isoformat(),
            "reason": reason,
            "messages": [
                {
                    "user_id": user_id,
                    "session_id": session_id,
                    "message_id": message.message_id,
                    "role": message.role,
                    "content": message.content[:each],
                    "timestamp": message.timestamp,
                    "name": message.name,
                }
                for session_id, message in sorted(said, key=_time)
            ],
        }
    )


def _time(said: tuple[str, Message]) -> int:
    return said[1].timestamp


class SummariesAgent:
    """Answers requests: with a model where one is configured, else with what the messages themselves say."""

    def __init__(
        self,
        *,
        plan: SummaryPlan,
        folder: Path,
        summariser: Summariser | None,
        memory: MemorySettings,
        pending: PendingSummaries,
        shards: OwnedShards,
        outbox: Outbox,
        dead_letters: DeadLetters,
        rerouting: Rerouting,
        metrics: Metrics,
        precedence: IntakeFirst,
        backlog: Callable[[], int],
        topics: Topics,
    ) -> None:
        self.plan, self.files = plan, DayFiles(folder, plan.fallback_dir)
        self._summariser, self._limits = summariser, Limits.of(memory)
        self._pending, self._shards, self._outbox = pending, shards, outbox
        self._dead_letters, self._rerouting, self._metrics = dead_letters, rerouting, metrics
        self._precedence, self._backlog, self._topics = precedence, backlog, topics
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._places = asyncio.Semaphore(1 if plan.model is None else plan.model.concurrency)

    async def handle(self, partition: int, records: Sequence[Any]) -> None:
        """One fetched batch of a partition."""
        for start in range(0, len(records), REQUESTS_AT_A_TIME):
            requests = self._decoded(records[start : start + REQUESTS_AT_A_TIME])
            await asyncio.gather(*(self._answer(partition, request) for request in requests))

    async def forget_user(self, partition: int, user_id: str) -> None:
        """Nothing of the user stays in a file, or is written into one. Raises `SummaryFilesError`."""
        async with self._of_user(user_id):
            for pending in self._pending.of_user(partition, user_id):
                self._pending.drop(partition, pending.request)
            await asyncio.to_thread(self.files.forget, user_id)

    def _decoded(self, records: Sequence[Any]) -> list[SummaryRequest]:
        requests = []
        for record in records:
            try:
                request = decode(record)
            except BadRecord as error:
                self._dead_letters.bury(record, error)
                continue
            if not self._rerouting.sent_home(record, request.user_id):
                requests.append(request)
        return requests

    async def _answer(self, partition: int, request: SummaryRequest) -> None:
        """This request, after those of its user that had failed before."""
        async with self._places, self._of_user(request.user_id):
            await self._precedence.wait()
            await self._give_way()
            for pending in self._pending.of_user(partition, request.user_id):
                if pending.request.run_id != request.run_id and not await self._tried(partition, pending):
                    break
            await self._tried(partition, Pending(request, 0))

    async def _give_way(self) -> None:
        """What is promoted is embedded first: somebody may ask for it now. Not for ever, where it never ends."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GIVE_WAY_SECONDS):
                while self._backlog() > BACKLOG:  # noqa: ASYNC110 - lag is a number in another thread
                    await asyncio.sleep(LOOK_AGAIN_SECONDS)

    def _of_user(self, user_id: str) -> asyncio.Lock:
        """One user's requests are answered in their order, and none while the user is being forgotten."""
        lock = self._order.get(user_id)
        if lock is None:
            lock = self._order[user_id] = asyncio.Lock()
        return lock

    async def _tried(self, partition: int, pending: Pending) -> bool:
        """Whether it is settled. What is not is kept, and tried again with the user's next request."""
        request, day = pending.request, date.fromisoformat(pending.request.date)
        if request.run_id in await asyncio.to_thread(self.files.runs, request.user_id, day):
            outcome = "repeated"
        elif await self._forgotten(partition, request):
            outcome = "forgotten"
        else:
            outcome = await self._made(request, day, pending.tries + 1)
        self._metrics.summaries.labels(outcome).inc()
        if outcome == "failed":
            for given_up in self._pending.keep(partition, pending._replace(tries=pending.tries + 1)):
                log.error("a summary of %s is given up: too many of its user wait", given_up.request.date)
            return False
        self._pending.drop(partition, request)
        return True

    async def _forgotten(self, partition: int, request: SummaryRequest) -> bool:
        newest = max((message.timestamp for message in request.messages), default=0)
        asked = [(request.user_id, request.run_id, newest)]
        return (await self._shards.call(partition, Shard.forgotten, asked))[0]

    async def _made(self, request: SummaryRequest, day: date, tries: int) -> str:
        turns = turns_of(request.messages, self._limits)
        if not turns:
            return "empty"
        summary = await self._summed_up(turns, request, tries)
        if summary is None:
            return "failed"
        text = rendered(
            summary,
            language=language_of(turns) if self.plan.language == "auto" else self.plan.language,
            written_at=(at := now_ms()),
            timezone=self.plan.timezone,
            reason=request.reason,
            headed=None,
        )
        moment = datetime.fromtimestamp(at / 1000, self.plan.timezone)
        try:
            written = await asyncio.to_thread(self.files.append, request.user_id, day, request.run_id, text, moment)
        except SummaryNotWritten as exc:
            log.error("%s", exc)
            return "failed"
        if isinstance(written, Already):
            return "repeated"
        if self.plan.promote:
            await self._promote(request, summary)
        if written.instead_of is None:
            return "written"
        first = written.instead_of
        log.warning("a summary is in %s: %s cannot be written to (%s)", written.path, first.path, first.reason)
        return "written_elsewhere"

    async def _summed_up(self, turns: Sequence[Turn], request: SummaryRequest, tries: int) -> Summary | None:
        """None where the model does not answer for now."""
        if self._summariser is not None:
            answer = await self._summariser.summarise(turns, request.date)
            if isinstance(answer, Summary):
                return grounded(answer, turns)
            if isinstance(answer, Unavailable) and tries < MOST_TRIES:
                return None
            log.warning("a summary of %s is made without the model", request.date)
        return await asyncio.to_thread(extracted, turns)

    async def _promote(self, request: SummaryRequest, summary: Summary) -> None:
        """Preferences and decisions become long-term memories of kind `summary_item`."""
        newest = max(message.timestamp for message in request.messages)
        items: list[Preference | Decision] = [*summary.preferences, *summary.decisions]
        for item in items:
            identity = uuid.uuid5(SILTSTONE, f"summary_item/{request.user_id}/{','.join(item.sources)}/{item.text}")
            event = Remember(
                event_id=event_id("summary_item", identity),
                user_id=request.user_id,
                timestamp=newest,
                memory_id=identity,
                text=item.text,
                importance=PROMOTED_IMPORTANCE,
                origin="summary_item",
                message_ids=list(item.sources),
                metadata={"date": request.date},
            )
            await self._outbox.send(
                self._topics.long_term, event.model_dump_json().encode(), key=key_of(request.user_id)
            )
