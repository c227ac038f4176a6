"""Dates of answers: the day of a question for its user, and when a memory was said, seen from that day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Final, NamedTuple

from schemas.memories import Memory
from schemas.times import day_of
from streams.language.scripts import is_chinese

#: Ages from this number of days on are given in weeks, and in months. The latter is chosen so that there are two.
_WEEKS_FROM, _MONTHS_FROM, _YEARS_FROM_MONTHS = 14, 63, 24


class _Words(NamedTuple):
    """The words of one language. A unit is formatted with a number, and then put into `ago` or `ahead`."""

    near: dict[int, str]
    days: str
    weeks: str
    months: str
    years: str
    ago: str
    ahead: str
    since: str
    until: str
    comma: str


_ENGLISH: Final = _Words(
    near={0: "today", 1: "yesterday", -1: "tomorrow"},
    days="{} days",
    weeks="{} weeks",
    months="{} months",
    years="{} years",
    ago="{} ago",
    ahead="in {}",
    since="from {}",
    until="until {}",
    comma=", ",
)
_CHINESE: Final = _Words(
    near={0: "今天", 1: "昨天", -1: "明天"},
    days="{} 天",
    weeks="{} 周",
    months="{} 个月",
    years="{} 年",
    ago="{}前",
    ahead="{}后",
    since="从 {} 起",
    until="到 {} 为止",
    comma="，",
)


@dataclass(frozen=True, slots=True)
class ReferenceDate:
    """The time of a question (epoch ms), the time zone in which its user counts days, and whether answers have dates.

    >>> noon = ReferenceDate(1_795_867_200_000, UTC)
    >>> opening(noon.day), noon.said(1_773_446_400_000, "I moved to Oslo")
    ('Today is Saturday, 2026-11-28.', '2026-03-14, 8 months ago')
    """

    moment: int
    zone: tzinfo
    dates: bool = True

    @property
    def day(self) -> date:
        return day_of(self.moment, self.zone)

    @property
    def shown_day(self) -> date | None:
        """The day, or None if answers have no dates."""
        return self.day if self.dates else None

    def said(self, millis: int, text: str) -> str:
        """Return the day of a time (epoch ms), and how long ago it is, in Chinese if `text` is Chinese."""
        words, day = _CHINESE if is_chinese(text) else _ENGLISH, day_of(millis, self.zone)
        return words.comma.join((str(day), _age(day, self.day, words)))

    def seen(self, memory: Memory) -> str:
        """Return when a memory was said. If it holds only from or until another time, those days follow."""
        said, begins, ends = self.said(memory.created_at, memory.text), memory.valid_from, memory.valid_to
        if begins is None and ends is None:
            return said
        words, shown = _CHINESE if is_chinese(memory.text) else _ENGLISH, [said]
        if begins is not None and begins != ends:
            shown.append(words.since.format(day_of(begins, self.zone)))
        if ends is not None:
            shown.append(words.until.format(day_of(ends, self.zone)))
        return words.comma.join(shown)

    def clock(self, millis: int) -> str:
        """Return the day and the time of day of a time (epoch ms), such as `2026-03-14 18:05`."""
        return f"{datetime.fromtimestamp(millis / 1000, self.zone):%Y-%m-%d %H:%M}"


def opening(day: date) -> str:
    """Return the sentence that says what day it is."""
    return f"Today is {day:%A}, {day}."


def _age(day: date, today: date, words: _Words) -> str:
    days = (today - day).days
    if days in words.near:
        return words.near[days]
    count, (earlier, later) = abs(days), sorted((day, today))
    months = 12 * (later.year - earlier.year) + later.month - earlier.month - (later.day < earlier.day)
    if count < _WEEKS_FROM:
        span = words.days.format(count)
    elif count < _MONTHS_FROM:
        span = words.weeks.format(count // 7)
    elif months < _YEARS_FROM_MONTHS:
        span = words.months.format(months)
    else:
        span = words.years.format(months // 12)
    return (words.ago if days > 0 else words.ahead).format(span)
