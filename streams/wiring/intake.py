"""conversations → windows → promotions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Self

from schemas.settings import SummaryPlan
from streams.agents.short_term import ShortTermAgent, session_record
from streams.clients.rating import ModelRater
from streams.jobs.ratings import Ratings
from streams.rules.estimator import estimated_rating
from streams.rules.explaining import Explainer
from streams.rules.promotion import Promoter
from streams.rules.session import SessionRules
from streams.rules.summary.triggers import Triggers
from streams.session_notes import SessionNotes
from streams.shards import OwnedShards
from streams.timers import Timers
from streams.wiring.chats import RatingChat
from streams.wiring.context import WorkerContext
from tables.windows.short_term import ShortTermStore

#: How often silence is looked for, and lag is measured.
TICK_SECONDS: Final = 1.0
#: How often expired notes are dropped; no answer shows them meanwhile.
NOTES_SECONDS: Final = 60.0


class Intake:
    """The windows, what keeps them, and what rates their exchanges."""

    def __init__(
        self, context: WorkerContext, shards: OwnedShards, rater: RatingChat | None, plan: SummaryPlan
    ) -> None:
        memory, self._context = context.settings.memory, context
        self.windows = ShortTermStore()
        self.ratings = (
            None
            if rater is None
            else Ratings(
                ModelRater(rater.chat),
                rater.settings.concurrency,
                shards,
                context.metrics,
                on_failure=context.hot.halt,
            )
        )
        at_once, name = (estimated_rating, "the local estimator") if rater is None else (None, rater.settings.model)
        self.explainer = Explainer(memory, at_once, name)
        self.short_term = ShortTermAgent(
            store=self.windows,
            rules=SessionRules(memory, Promoter(memory, at_once), Triggers(plan)),
            event_log=context.event_log,
            inbox=context.inbox(session_record),
            metrics=context.metrics,
            clock=context.clock,
            ratings=self.ratings,
        )
        self.notes = SessionNotes(
            store=self.windows,
            shards=shards,
            event_log=context.event_log,
            metrics=context.metrics,
            clock=context.clock,
            memory=memory,
            important=context.settings.lifecycle.active,
            opened=self.short_term.idle.seen,
        )
        self.short_term.when_ended(self.notes.session_ended)

    async def __aenter__(self) -> Self:
        if self.ratings is not None:
            self.ratings.start(self.short_term.answered)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.ratings is not None:
            await self.ratings.stop()

    async def recovered(self) -> None:
        """The tables are back."""
        await self.short_term.recovered()
        self.notes.recovered()

    def schedule(self, timers: Timers, recovered: Callable[[], bool]) -> None:
        """Have done in its time what is done only while the tables are there."""

        def every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
            async def where_recovered() -> None:
                if recovered():
                    await work()

            timers.every(seconds, where_recovered)

        every(TICK_SECONDS, self._tick)
        every(NOTES_SECONDS, self._drop_notes)

    async def _tick(self) -> None:
        context = self._context
        await self.short_term.note_silence(context.settings.memory)
        self.short_term.forget_expired(context.settings.memory)
        if self.ratings is not None:
            self.ratings.tick()
        context.gate.must_wait()
        context.metrics.sessions.set(len(self.windows.sessions))
        for topic, lag in context.hot.lag().items():
            context.metrics.lag.labels(topic).set(lag)

    async def _drop_notes(self) -> None:
        self.notes.forget_expired()
