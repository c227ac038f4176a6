"""Spans of local time: days, weeks, months, seasons, years, and how they are found from a day.

A span is `[start, end)` in local time without a zone. All functions raise `ValueError` or `OverflowError` outside of
the years that `datetime` knows; the reader drops such expressions.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Final, Literal, NamedTuple

Grain = Literal["hour", "day", "week", "month", "season", "year"]
Unit = Literal["minute", "hour", "day", "week", "month", "year"]

_DAY: Final = timedelta(days=1)
#: The first months of the seasons of the north. A winter belongs to the year of its December.
SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}


class Span(NamedTuple):
    """`[start, end)` in local time."""

    start: datetime
    end: datetime
    grain: Grain

    @property
    def is_one_day(self) -> bool:
        return self.grain == "day" and self.end - self.start == _DAY


def days(first: date, after: date, grain: Grain) -> Span:
    """Return the days from `first` to the one before `after`."""
    return Span(datetime.combine(first, time()), datetime.combine(after, time()), grain)


def day(which: date) -> Span:
    return days(which, which + _DAY, "day")


def day_from(today: date, offset: int) -> Span:
    return day(today + offset * _DAY)


def week(today: date, offset: int) -> Span:
    """Return a week, which begins on Monday, by its distance in weeks from the week of `today`."""
    monday = today + (7 * offset - today.weekday()) * _DAY
    return days(monday, monday + 7 * _DAY, "week")


def weekday(today: date, which: int, offset: int) -> Span:
    """Return Monday (0) to Sunday (6) of a week by its distance in weeks from the week of `today`."""
    return day_from(week(today, offset).start.date(), which)


def weekend(today: date, offset: int) -> Span:
    saturday = weekday(today, 5, offset).start.date()
    return days(saturday, saturday + 2 * _DAY, "day")


def moved(day: date, months: int) -> date:
    """Return the same day some months later or earlier, or the last day of that month if it is shorter."""
    years, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    first = date(years, month + 1, 1)
    following = date(years + month // 11, (month + 1) % 12 + 1, 1)
    return first.replace(day=min(day.day, (following - first).days))


def months(year: int, first: int, count: int, grain: Grain) -> Span:
    """Return some months from the month `first` (1 to 12) of a year on."""
    begin = date(year, first, 1)
    return days(begin, moved(begin, count), grain)


def month(year: int, which: int) -> Span:
    return months(year, which, 1, "month")


def month_from(today: date, offset: int) -> Span:
    there = moved(today.replace(day=1), offset)
    return month(there.year, there.month)


def year(which: int) -> Span:
    return months(which, 1, 12, "year")


def years(first: int, last: int) -> Span:
    """Return the years from `first` to `last`, both included."""
    return Span(year(first).start, year(last).end, "year")


def season(year: int, name: str) -> Span:
    return months(year, SEASONS[name], 3, "season")


def half(year: int, which: int) -> Span:
    return months(year, 6 * which - 5, 6, "season")


def quarter(year: int, which: int) -> Span:
    return months(year, 3 * which - 2, 3, "season")


def part_of_month(month: Span, part: str) -> Span:
    """Return the days 1 to 10 (`early`), 11 to 20 (`mid`), from 21 on (`late`), or the last ten days (`end`)."""
    first, after = month.start.date(), month.end.date()
    eleventh, twenty_first = first + 10 * _DAY, first + 20 * _DAY
    if part == "early":
        return days(first, eleventh, "week")
    if part == "mid":
        return days(eleventh, twenty_first, "week")
    return days(twenty_first if part == "late" else after - 10 * _DAY, after, "week")


def part_of_year(year: int, part: str) -> Span:
    """Return the first two months (`early`) or the last two (`end`)."""
    return months(year, 1 if part == "early" else 11, 2, "month")


def hours(which: date, first: int, after: int) -> Span:
    """Return the hours of a day from `first` to the one before `after`. The latter may be of the day after."""
    midnight = datetime.combine(which, time())
    return Span(midnight + timedelta(hours=first), midnight + timedelta(hours=after), "hour")


def distant(now: datetime, count: int, unit: Unit) -> Span:
    """Return what lies some units ahead, or ago if `count` is negative.

    Three days ahead are a day. Weeks, months and years are those of the calendar. Minutes give the clock's hour.

    >>> distant(datetime(2026, 3, 14, 18, 5), -2, "month").start
    datetime.datetime(2026, 1, 1, 0, 0)
    """
    if unit in ("minute", "hour"):
        there = now + (timedelta(minutes=count) if unit == "minute" else timedelta(hours=count))
        return hours(there.date(), there.hour, there.hour + 1)
    today = now.date()
    if unit == "day":
        return day_from(today, count)
    if unit == "week":
        return week(today, count)
    return month_from(today, count) if unit == "month" else year(today.year + count)


def lasting(now: datetime, count: int, unit: Unit) -> Span:
    """Return the days from now to some units ahead, or from then to now if `count` is negative, with both ends.

    Hours and minutes give the hours of the clock instead of days.

    >>> [str(end) for end in lasting(datetime(2026, 3, 14, 18, 5), -3, "day")[:2]]
    ['2026-03-11 00:00:00', '2026-03-15 00:00:00']
    """
    if unit == "minute" or unit == "hour":
        ends = sorted((distant(now, 0, unit), distant(now, count, unit)))
        return Span(ends[0].start, ends[1].end, "hour")
    today = now.date()
    if unit in ("day", "week"):
        there = today + count * (_DAY if unit == "day" else 7 * _DAY)
    else:
        there = moved(today, count if unit == "month" else 12 * count)
    first, last = sorted((today, there))
    return days(first, last + _DAY, unit)


def weekdays_around(today: date, which: int) -> list[Span]:
    """Return the two nearest days of that name, without `today`."""
    ahead = (which - today.weekday()) % 7 or 7
    behind = (today.weekday() - which) % 7 or 7
    return [day_from(today, -behind), day_from(today, ahead)]


def dates_around(today: date, month: int, day_of_month: int) -> list[Span]:
    """Return that date of three years, without those of them that do not exist (29 February)."""
    return _that_exist((today.year + offset, month, day_of_month) for offset in (-1, 0, 1))


def days_of_month_around(today: date, day_of_month: int) -> list[Span]:
    """Return that day of five months, without those of them that do not exist."""
    there = [moved(today.replace(day=1), offset) for offset in (-2, -1, 0, 1, 2)]
    return _that_exist((first.year, first.month, day_of_month) for first in there)


def _that_exist(dates: Iterable[tuple[int, int, int]]) -> list[Span]:
    found = []
    for numbers in dates:
        try:
            found.append(day(date(*numbers)))
        except ValueError:
            continue
    return found


def nearest(spans: list[Span], today: date, ahead: bool) -> Span | None:
    """Return the first span that has not ended before `today`, or, if not `ahead`, the last one that has begun."""
    midnight = datetime.combine(today, time())
    if ahead:
        return next((span for span in spans if span.end > midnight), None)
    return next((span for span in reversed(spans) if span.start <= midnight), None)


def directed(spans: list[Span], today: date, ahead: bool) -> Span | None:
    """Return the first span that begins after `today`, or, if not `ahead`, the last one that ended before."""
    midnight = datetime.combine(today, time())
    if ahead:
        return next((span for span in spans if span.start > midnight), None)
    return next((span for span in reversed(spans) if span.end <= midnight), None)
