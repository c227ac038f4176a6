"""The days of Chinese holidays by the moon, of the years 1990 to 2099, from a table.

The table was made with the package lunardate 0.3, and lunar-python 1.4 has the same days.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from tables.time_expressions.calendar import Span, day

_FIRST_YEAR: Final = 1990


def _days(month: int, first: int, later: str) -> tuple[date, ...]:
    """Return a day of each year: so many days later than the first day of the year on which the holiday can be."""
    return tuple(
        date(year, month, first) + timedelta(days=int(days)) for year, days in enumerate(later.split(), _FIRST_YEAR)
    )


_SPRING_FESTIVAL: Final = _days(
    1,
    21,
    "6 25 14 2 20 10 29 17 7 26 15 3 22 11 1 19 8 28 17 5 24 13 2 20 10 29 18 7 26 15 "
    "4 22 11 1 20 8 27 16 5 23 13 2 21 10 29 18 7 25 14 3 22 11 1 20 9 27 16 5 24 12 "
    "2 21 11 29 18 7 25 14 3 22 12 0 19 8 27 15 5 24 13 2 21 10 29 17 6 25 15 3 22 12 "
    "1 19 8 27 16 5 24 13 3 20 9 28 17 6 25 15 4 22 11 0",
)
_DRAGON_BOAT: Final = _days(
    5,
    27,
    "1 20 9 28 17 6 24 13 3 22 10 29 19 8 26 15 4 23 12 1 20 10 27 16 6 24 13 3 22 11 "
    "29 18 7 26 14 4 23 13 1 20 9 28 16 5 24 14 3 22 11 0 18 7 26 15 4 23 12 2 19 8 "
    "27 17 5 24 14 3 21 10 29 18 7 26 15 5 23 12 1 20 8 27 17 6 24 14 3 21 10 28 18 8 "
    "26 15 5 23 11 0 19 9 27 17 6 25 13 2 21 10 28 18 8 27",
)
_MID_AUTUMN: Final = _days(
    9,
    7,
    "26 15 4 23 13 2 20 9 28 17 5 24 14 4 21 11 29 18 7 26 15 5 23 12 1 20 8 27 17 6 "
    "24 14 3 22 10 29 18 8 26 15 5 24 12 1 20 9 27 17 6 25 13 3 21 10 28 18 8 27 15 4 "
    "23 12 0 19 9 28 17 6 25 14 2 21 10 29 18 8 26 16 4 22 12 1 19 9 28 17 5 24 13 3 "
    "21 10 29 19 7 26 15 4 22 11 1 20 9 28 17 6 23 13 2 22",
)

#: By name, the day of each year from which it is counted, and the number of days from then.
LUNAR_HOLIDAYS: Final = {
    "春节": (_SPRING_FESTIVAL, 0),
    "除夕": (_SPRING_FESTIVAL, -1),
    "元宵节": (_SPRING_FESTIVAL, 14),
    "端午节": (_DRAGON_BOAT, 0),
    "端午": (_DRAGON_BOAT, 0),
    "中秋节": (_MID_AUTUMN, 0),
    "中秋": (_MID_AUTUMN, 0),
}


def lunar_holiday(name: str, years: range) -> list[Span]:
    """Return the days of a holiday in those of the years that the table has.

    >>> [span] = lunar_holiday("中秋", range(2026, 2027))
    >>> span.start.date()
    datetime.date(2026, 9, 25)
    """
    return list(_in(name, years))


def _in(name: str, years: range) -> Iterator[Span]:
    table, later = LUNAR_HOLIDAYS[name]
    for year in years:
        if 0 <= year - _FIRST_YEAR < len(table):
            yield day(table[year - _FIRST_YEAR] + timedelta(days=later))
