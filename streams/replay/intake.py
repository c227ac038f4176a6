"""Replay of one partition's conversations by a worker's intake, but without Faust, and as fast as possible."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

from aiokafka.errors import KafkaError

from schemas.errors import SiltstoneError
from schemas.settings import Settings
from schemas.topics import EXCHANGES, SESSIONS, Topics
from streams.intake.idle_tracker import IdleTracker
from streams.kafka.commit.outbox import StateStore
from streams.replay.context import Kept, Send, replay_context
from streams.replay.plan import OffsetRange
from streams.replay.progress import ReplayProgress, message_name
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics, labelled
from streams.worker.wiring.chats import RatingChat
from streams.worker.wiring.intake import Intake

#: The minimum number of seconds between two saves of the progress. If the process is killed, the next run reads the
#: records since the last save again.
SAVE_SECONDS = 2.0
#: Seconds for which the replay repeats a request to a model that does not answer. A worker repeats it for a day, but
#: an operator waits for the end of a replay.
PATIENCE_SECONDS = 600.0
#: Seconds between two checks, at the end of a replay, whether the model has answered.
TICK_SECONDS = 0.1


class ReplayedIntake:
    """Replays the conversations of one partition: fills windows, and finds promotions that are missing in the log.

    The found promotions are sent to the log with `send`. If `send` is None, they are stored in `progress`. Dead
    letters and misrouted records are ignored, because the worker that reads the same conversations sends them.
    """

    def __init__(
        self,
        partition: int,
        span: OffsetRange,
        progress: ReplayProgress,
        *,
        settings: Settings,
        topics: Topics,
        shards: OwnedShards | None,
        rater: RatingChat | None,
        send: Send | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._partition, self._span, self._progress, self._memory = partition, span, progress, settings.memory
        self._monotonic, self._saved_at = monotonic, monotonic()
        self._newest_record = 0.0
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._counted: dict[str, int] = {}
        self._kept = Kept(topics.long_term, progress, send)
        context = replay_context(settings, topics, self._kept, Metrics(), self._fail)
        self._metrics, self._outbox = context.metrics, context.outbox
        self._not_allowed: list[KafkaError] = []
        self._outbox.on_not_allowed = self._not_allowed.append
        # A worker uses the machine's clock to drop ended sessions. A replay uses the time of the newest record
        # instead.
        idle = IdleTracker(lambda: self._newest_record)
        self._intake = Intake(context, shards, rater, None, idle=idle, patience=PATIENCE_SECONDS)
        self._agent, windows = self._intake.short_term, self._intake.windows
        self._tables: dict[str, StateStore] = {EXCHANGES: windows.exchanges, SESSIONS: windows.sessions}
        for name, rows in self._tables.items():
            self._outbox.add_table(name, rows)

    async def __aenter__(self) -> Self:
        await self._intake.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._intake.__aexit__()
        self._failed.cancel()

    async def begin(self) -> int:
        """Restore the windows from the saved progress. Return the offset of `conversations` at which to continue."""
        for name, rows in self._tables.items():
            rows.restore(self._partition, self._progress.rows(name))
        self._newest_record = self._progress.noted.get("newest_record", 0) / 1000
        offset = self._progress.noted.get("offset", self._span.before)
        self._kept.silent = offset < self._span.start
        await self._agent.recovered()
        return offset

    async def take(self, records: Sequence[Any], position: int) -> None:
        """Process records in the order of their offsets, and save the progress every `SAVE_SECONDS`.

        `position` is the offset after the last record that was read. `records` may lack that record, because it has
        only the records of the users who are replayed.
        """
        earlier = [record for record in records if record.offset < self._span.start]
        if earlier:
            await self._handle(earlier)
        if self._kept.silent and position >= self._span.start:
            await self._arrive()
        if ours := records[len(earlier) :]:
            await self._handle(ours)
        if self._monotonic() - self._saved_at >= SAVE_SECONDS:
            await self._save(position)

    async def end(self) -> None:
        """Wait for the model's outstanding answers, then save the progress.

        Exchanges that would be decided by later records remain undecided.
        """
        if self._intake.ratings is not None:
            while any(True for _ in self._intake.windows.asked()):
                self._intake.ratings.tick()
                await self._unless_failed(asyncio.sleep(TICK_SECONDS))
        await self._save(self._span.end)

    async def _handle(self, records: Sequence[Any]) -> None:
        self._newest_record = max(self._newest_record, records[-1].timestamp / 1000)
        asked = await self._agent.handle(self._partition, records)
        if asked is not None:
            await self._unless_failed(asked)

    async def _arrive(self) -> None:
        """Begin the replayed range: record the messages that came before it, and stop ignoring promotions."""
        windows = self._intake.windows
        names = [
            message_name(session.user_id, session.session_id, message_id)
            for partition, session in windows.all_sessions()
            for message_id in windows.message_ids(partition, session)
        ]
        self._progress.said_earlier(names)
        self._kept.silent = False
        self._counted = self._counts()

    async def _save(self, offset: int) -> None:
        self._agent.forget_expired(self._memory)
        if not await self._outbox.flush():
            self._outbox.abandon()
            if self._not_allowed:
                raise self._not_allowed[0]
            raise SiltstoneError("the broker did not accept the promotions: check it, then run the command again")
        counts = self._counts()
        if self._kept.silent:
            self._counted = counts
        grown = {name: count - self._counted.get(name, 0) for name, count in counts.items()}
        numbers = {name: self._progress.noted.get(name, 0) + more for name, more in grown.items()}
        numbers |= {"offset": offset, "newest_record": round(self._newest_record * 1000)}
        rows, found = self._kept.taken()
        self._progress.save(rows, found, numbers)
        self._counted, self._saved_at = counts, self._monotonic()

    def _counts(self) -> dict[str, int]:
        metrics = self._metrics
        return {
            "messages": labelled(metrics.messages).get((), 0),
            "exchanges": labelled(metrics.exchanges).get((), 0),
            "promoted": metrics.promoted(),
            "unusable": sum(labelled(metrics.dead_letters).values()),
            "misrouted": sum(labelled(metrics.rerouted).values()),
            **self._kept.counts,
        }

    def _fail(self, exc: BaseException, where: str) -> None:
        if not self._failed.done():
            self._failed.set_exception(SiltstoneError(f"{where} failed: {exc}"))

    async def _unless_failed(self, asked: Awaitable[Any]) -> None:
        """Wait for `asked`. If a rating fails meanwhile, raise its error, because `asked` would never be done."""
        waiting = asyncio.ensure_future(asked)
        try:
            await asyncio.wait((waiting, self._failed), return_when=asyncio.FIRST_COMPLETED)
            if self._failed.done():
                self._failed.result()
            await waiting
        finally:
            waiting.cancel()
