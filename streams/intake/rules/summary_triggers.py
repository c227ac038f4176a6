"""When a session's messages are to be summed up: by their count, when the user asks for it, at the end of a day."""

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

#: Who asks for a summary says it in a few words; a pasted article that says it too asks for nothing.
LONGEST_REQUEST: Final = 200


class SummaryWanted(NamedTuple):
    """A summary of these messages of a day; `by` tells it from every other one of the session."""

    reason: Reason
    day: date
    by: str
    messages: tuple[Message, ...]


class Triggers:
    """The plan's rules. Days are those of its time zone, by the messages' own times.

    `interval` is in user messages, 0 for never; where nothing is `automatic`, only requests are answered.
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
        """The day of a moment (epoch ms)."""
        return day_of(moment, self.timezone)

    def end_of_day(self, moment: int) -> int:
        """When the moment's day is over; both epoch ms."""
        return self._end_of_day(moment // 900_000)  # no zone's day begins within a quarter of an hour

    def _reckoned(self, quarter: int) -> int:
        day = self.day_of(quarter * 900_000)
        midnight = datetime.combine(day + timedelta(days=1), time(), self.timezone)
        return round(midnight.astimezone(UTC).timestamp() * 1000)
