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

#: Maximum number of characters of a request for a summary. A longer text, such as a pasted article, is no request.
LONGEST_REQUEST: Final = 200


class SummaryWanted(NamedTuple):
    """A summary that has to be requested. `messages` are from one day.

    `by` distinguishes the summary from other summaries of the same session, day and reason.
    """

    reason: Reason
    day: date
    by: str
    messages: tuple[Message, ...]


class Triggers:
    """The rules of a summary plan. A message belongs to the day of its own timestamp, in the plan's time zone.

    `interval` is the number of user messages after which a summary is requested; 0 turns this trigger off. If the
    plan is not `automatic`, only requests by the user trigger a summary.
    """

    def __init__(self, plan: SummaryPlan) -> None:
        self.automatic = plan.automatic
        self.interval = plan.interval if plan.automatic else 0
        self._phrases = Phrases(plan.request_phrases, FOR_A_SUMMARY)
        self.timezone = plan.timezone
        self._end_of_day = lru_cache(maxsize=4_096)(self._reckoned)

    def asked_for(self, content: str) -> bool:
        """True if a user's message with this content asks for a summary."""
        return len(content) <= LONGEST_REQUEST and self._phrases.found_in(content)

    def day_of(self, moment: int) -> date:
        """Return the day to which a time (epoch ms) belongs in the plan's time zone."""
        return day_of(moment, self.timezone)

    def end_of_day(self, moment: int) -> int:
        """Return the end of the day to which the time `moment` belongs. Both times are epoch ms."""
        return self._end_of_day(moment // 900_000)  # 15 min: in all time zones, days begin at full quarter hours

    def _reckoned(self, quarter: int) -> int:
        day = self.day_of(quarter * 900_000)
        midnight = datetime.combine(day + timedelta(days=1), time(), self.timezone)
        return round(midnight.astimezone(UTC).timestamp() * 1000)
