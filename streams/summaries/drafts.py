"""The text of a summary: from a model if one is configured, else extracted from the messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from schemas.settings import SummaryPlan
from schemas.summaries import Summary
from schemas.times import now_ms
from streams.intake.rules.exchanges import Limits
from streams.summaries.queue import Group
from streams.summaries.rules import Turn
from streams.summaries.rules.drafting import Draft, Order, read, written
from streams.summaries.summariser import Malformed, Unavailable

log = logging.getLogger(__name__)

#: After this many failed tries, a summary is made without the model.
MOST_TRIES = 3

#: A group of requests, and the draft of its summary, or None if the summary cannot be made now.
Drafted = tuple[Group, Draft | None]


class Summariser(Protocol):
    """Sums up a day with a model. A line that no message holds is not in the summary."""

    async def summarise(self, turns: Sequence[Turn], date: str) -> Summary | Malformed | Unavailable: ...


class Extraction(Protocol):
    """Sums up days without a model.

    Returns None in place of a draft that could not be made, but may be tried again.
    """

    async def drafted(self, orders: Sequence[Order]) -> list[Draft | None]: ...

    async def close(self) -> None: ...


class Drafts:
    """Makes the drafts of summaries for groups of requests."""

    def __init__(
        self, plan: SummaryPlan, summariser: Summariser | None, extraction: Extraction, limits: Limits
    ) -> None:
        self._plan, self._summariser, self._extraction, self._limits = plan, summariser, extraction, limits

    @property
    def by_model(self) -> bool:
        """True if a model makes the summaries. A model gets one day at a time."""
        return self._summariser is not None

    async def close(self) -> None:
        """End the extraction process."""
        await self._extraction.close()

    async def of(self, groups: Sequence[Group]) -> list[Drafted]:
        """Return the groups with their drafts. A group may be split into several groups, each with its own draft."""
        if self._summariser is None:
            return await self._extracted(groups)
        drafts: list[Drafted] = []
        for group in groups:
            drafts += await self._asked_for(self._summariser, group)
        return drafts

    async def _asked_for(self, summariser: Summariser, group: Group) -> list[Drafted]:
        """Ask the model for the summary of a group.

        If the model's answers cannot be used, all requests are summed up without the model. If the model is
        unavailable, only the requests that have now been tried `MOST_TRIES` times are summed up without it.
        """
        order, date = self._order_of(group), group.of.day.isoformat()
        found = await asyncio.to_thread(read, order)
        answer = await summariser.summarise(found.turns, date)
        if isinstance(answer, Summary):
            return [(group, await asyncio.to_thread(written, answer, found, order))]
        drafts: list[Drafted] = []
        if isinstance(answer, Unavailable):
            patient = group.only(one for one in group.asked if one.tries + 1 < MOST_TRIES)
            group = group.only(one for one in group.asked if one.tries + 1 >= MOST_TRIES)
            drafts += [(patient, None)] if patient.asked else []
        if group.asked:
            log.warning("a summary of %s is made without the model", date)
            drafts += await self._extracted([group])
        return drafts

    async def _extracted(self, groups: Sequence[Group]) -> list[Drafted]:
        """Make drafts without a model. If the draft of a group fails, try each request of the group alone."""
        drafts = await self._extraction.drafted([self._order_of(group) for group in groups]) if groups else []
        made: list[Drafted] = []
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
            language=self._plan.language,
            timezone=self._plan.timezone,
            reason=group.reason,
            written_at=now_ms(),
        )
