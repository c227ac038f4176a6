"""Triggers of a summary: a number of messages, the user's request, or the end of a day."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from schemas.exchanges import Message
from schemas.settings import SummaryPlan
from schemas.times import day_of
from streams.language.asking import FOR_A_SUMMARY
from streams.language.phrases import Phrases

Reason = Literal["count", "manual", "day_end"]

#: Characters of the longest request for a summary; a pasted article with the same words is no request.
LONGEST_REQUEST: Final = 200


class SummaryWanted(NamedTuple):
    """A summary to request of these messages of a day; `by` distinguishes it from the session's other ones."""

    reason: Reason
    day: date
    by: str
    messages: tuple[Message, ...]


class Triggers:
    """The rules of a summary plan. Days are those of its time zone, by the messages' own times.

    `interval` is a number of user messages, 0 for never. If the plan is not `automatic`, only requests trigger.
    """

    def __init__(self, plan: SummaryPlan) -> None:
        self.automatic = plan.automatic
        self.interval = plan.interval if plan.automatic else 0
        self._phrases = Phrases(plan.request_phrases, FOR_A_SUMMARY)
        self.timezone = plan.timezone
        self._end_of_day = lru_cache(maxsize=4_096)(self._reckoned)

    def asked_for(self, content: str) -> bool:
        """Whether a user's message asks for a summary."""
        return len(content) <= LONGEST_REQUEST and self._phrases.found_in(content)

    def day_of(self, moment: int) -> date:
        """Return the day of a time (epoch ms)."""
        return day_of(moment, self.timezone)

    def end_of_day(self, moment: int) -> int:
        """Return when the day of a time ends; both are epoch ms."""
        return self._end_of_day(moment // 900_000)  # no zone's day begins within a quarter of an hour

    def _reckoned(self, quarter: int) -> int:
        day = self.day_of(quarter * 900_000)
        midnight = datetime.combine(day + timedelta(days=1), time(), self.timezone)
        return round(midnight.astimezone(UTC).timestamp() * 1000)
