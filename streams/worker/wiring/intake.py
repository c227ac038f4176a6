"""Builds the intake, which adds the records of `conversations` to windows, and promotes exchanges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, Self

from schemas.settings import SummaryPlan
from schemas.topics import EXCHANGES, NOTES, SESSIONS
from streams.intake.agent import ShortTermAgent, session_record
from streams.intake.idle_tracker import IdleTracker
from streams.intake.ratings import PATIENCE_SECONDS, Ratings
from streams.intake.rules.excluded_sources import promoter_of
from streams.intake.rules.explaining import Explainer
from streams.intake.rules.session import SessionRules
from streams.intake.rules.summary_triggers import Triggers
from streams.intake.session_notes import SessionNotes
from streams.language.estimator import estimated_rating
from streams.models.rating import ModelRater
from streams.runtime.timers import Timer, Timers
from streams.shards.owned import OwnedShards
from streams.worker.wiring.chats import RatingChat
from streams.worker.wiring.context import Context, WorkerContext
from tables.windows.short_term import KeptTables, ShortTermStore

#: Returns the number of uncommitted records, by topic and partition.
Lag = Callable[[], Mapping[tuple[str, int], int]]

#: Seconds between two checks for silent sessions, and between two measurements of the lag.
TICK_SECONDS: Final = 1.0
#: Seconds between two runs that drop expired notes. An expired note that is not dropped yet is not shown in answers.
NOTES_SECONDS: Final = 60.0


class Intake:
    """The windows, the agent that fills them, and the ratings of their exchanges.

    `shards` store the ratings of `rater`; if `rater` is None, `shards` may be None as well. If `plan` is None, no
    summaries are requested. If `kept` is None, the windows are only in memory.
    """

    def __init__(
        self,
        context: Context,
        shards: OwnedShards | None,
        rater: RatingChat | None,
        plan: SummaryPlan | None,
        *,
        kept: KeptTables | None = None,
        idle: IdleTracker | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        memory, self._context = context.settings.memory, context
        self.windows, self.ratings = ShortTermStore(kept, context.resident), None
        at_once, name = (estimated_rating, "the local estimator") if rater is None else (None, rater.settings.model)
        promoter = promoter_of(memory, at_once)
        if rater is not None:
            assert shards is not None
            self.ratings = Ratings(
                ModelRater(rater.chat),
                rater.settings.concurrency,
                shards,
                context.metrics,
                on_failure=context.on_failure,
                patience=patience,
                heard=promoter.heard,
            )
        self.explainer = Explainer(memory, at_once, name)
        self.short_term = ShortTermAgent(
            store=self.windows,
            rules=SessionRules(memory, promoter, None if plan is None else Triggers(plan)),
            event_log=context.event_log,
            inbox=context.inbox(session_record),
            metrics=context.metrics,
            clock=context.clock,
            ratings=self.ratings,
            idle=idle,
            spans=context.spans,
            flow=context.flow,
        )

    async def __aenter__(self) -> Self:
        if self.ratings is not None:
            self.ratings.start(self.short_term.answered)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.ratings is not None:
            await self.ratings.stop()

    def schedule(self, timers: Timers, recovered: Callable[[], bool], notes: SessionNotes, lag: Lag) -> None:
        """Start the timers. They do nothing while the tables are being recovered."""

        def every(timer: Timer, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
            async def where_recovered() -> None:
                if recovered():
                    await work()

            timers.every(timer, seconds, where_recovered)

        async def drop_notes() -> None:
            notes.forget_expired()

        every(Timer.SESSIONS, TICK_SECONDS, partial(self._tick, lag))
        every(Timer.NOTES, NOTES_SECONDS, drop_notes)

    async def _tick(self, lag: Lag) -> None:
        context = self._context
        self.short_term.forget_expired(context.settings.memory)  # before any `await`, so `recovered()` is still true
        await self.short_term.note_silence(context.settings.memory)
        if self.ratings is not None:
            self.ratings.tick()
        context.gate.must_wait()
        context.metrics.sessions.set(len(self.short_term.idle))
        context.metrics.windows_resident.set(context.resident.held_bytes())
        context.metrics.windows_read_back.set(context.resident.read_back)
        behind = context.readings.take(lag()).lag
        for topic in (context.topics.conversations, context.topics.long_term, context.topics.summary_requests):
            records = sum(behind.get((topic, partition), 0) for partition in range(context.partitions))
            context.metrics.lag.labels(topic).set(records)
        context.flow.tick()


def kept_tables(context: WorkerContext) -> KeptTables:
    """Return the tables of a worker's windows on its disk."""
    return KeptTables(context.kept(SESSIONS), context.kept(EXCHANGES), context.kept(NOTES))


def session_notes(context: Context, shards: OwnedShards, intake: Intake) -> SessionNotes:
    """Build the component for notes, which are explicit short-term memories.

    Notes arrive on the topic `long-term`, and end with their sessions.
    """
    notes = SessionNotes(
        store=intake.windows,
        shards=shards,
        event_log=context.event_log,
        metrics=context.metrics,
        clock=context.clock,
        memory=context.settings.memory,
        important=context.settings.lifecycle.active,
        opened=intake.short_term.idle.seen,
    )
    intake.short_term.when_ended(notes.session_ended)
    return notes
