"""What English time expressions mean: a function for each kind of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Final, get_args

from tables.time_expressions import calendar
from tables.time_expressions.calendar import Span, Unit
from tables.time_expressions.reader import Found, Hours, Reading, Spans, by_tense, only

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NUMBERS: Final = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "a couple of": 2,
    "a couple": 2,
    "a dozen": 12,
}
PARTS: Final = {"morning": (6, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 24), "noon": (12, 13)}
_STEPS: Final = {"last": -1, "this": 0, "next": 1, "past": -1, "coming": 1}
_UNITS: Final[dict[str, Unit]] = {
    **{unit: unit for unit in get_args(Unit)},
    "min": "minute",
    "hr": "hour",
    "yr": "year",
}
#: Months and days of holidays.
HOLIDAYS: Final = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "boxing day": (12, 26),
    "christmas": (12, 25),
    "new years eve": (12, 31),
    "new years day": (1, 1),
    "new years": (1, 1),
    "valentines day": (2, 14),
    "valentines": (2, 14),
    "halloween": (10, 31),
}


def _number(found: Found) -> int:
    said = " ".join(found.said("n").split()) or "1"
    return int(said) if said.isdigit() else NUMBERS[said]


def _unit(found: Found) -> Unit:
    return _UNITS[found.said("unit")]


def _step(found: Found) -> int:
    return _STEPS[found.said("way")]


def _which(found: Found, name: str, among: tuple[str, ...]) -> int:
    return among.index(found.said(name)[:3])


def distant_day(days: int) -> Callable[[Found], Reading]:
    return lambda found: only(calendar.day_from(found.today, days))


def this_part(found: Found) -> Reading:
    """Read "this evening", "tonight" and "last night"."""
    today = calendar.day_from(found.today, -1 if found.said("way") == "last" else 0)
    first, after = PARTS[found.said("part") or "night"]
    return Reading(lambda _: [today], Hours(first, after, alone=True, part=True))


def calendar_unit(found: Found) -> Reading | None:
    """Read "last week", "this month", "next weekend"."""
    unit, step = found.said("period"), _step(found)
    if unit == "week":
        return only(calendar.week(found.today, step))
    if unit == "weekend":
        return only(calendar.weekend(found.today, step))
    if unit == "month":
        return only(calendar.month_from(found.today, step))
    return only(calendar.year(found.today.year + step))


def one_further(found: Found) -> Reading:
    """Read "the week before last" and "the month after next"."""
    return only(calendar.distant(found.now, -2 if found.said("side") == "before" else 2, _unit(found)))


def weekday_of_week(found: Found) -> Reading:
    """Read "last Friday" and "Friday morning next week"."""
    day = only(calendar.weekday(found.today, _which(found, "weekday", WEEKDAYS), _step(found)))
    part = PARTS.get(found.said("part"))
    return day._replace(hours=Hours(*part, alone=True, part=True)) if part else day


def near_weekday(found: Found) -> Reading:
    """Read "this past Sunday" and "this coming Saturday"."""
    spans = calendar.weekdays_around(found.today, _which(found, "weekday", WEEKDAYS))
    return only(spans[found.said("way") == "coming"])


#: What makes a name, a habit or a day of a story of a weekday: Dr. Friday, my Tuesday class, the following Monday.
_NO_WEEKDAY: Final = re.compile(
    r"\b(?:(?i:dr|mr|mrs|ms|man|black|good|palm|ash|easter|cyber|casual|super|st|my|our|your|his|her|their"
    r"|an?|an? \w{1,12}|following|previous|same|that|first|second|third|fourth)|[A-Z][a-z]{1,15})\.?\s$",
    re.ASCII,
)


def weekday(found: Found) -> Reading | None:
    bare = found.match[0].lower() == found.said("weekday")
    if bare and _NO_WEEKDAY.search(found.before[-30:]):
        return None
    which = _which(found, "weekday", WEEKDAYS)
    return by_tense(lambda today: calendar.weekdays_around(today, which))


def ago(found: Found) -> Reading:
    return only(calendar.distant(found.now, -_number(found), _unit(found)))


def in_a_while(found: Found) -> Reading | None:
    """Read "in three days". Of the past, it says how long something took, as "in a day" does always."""
    if found.ahead is False or (found.said("n"), found.said("unit")) == ("a", "day"):
        return None
    return only(calendar.distant(found.now, _number(found), _unit(found)))


def half(found: Found) -> Reading:
    """Read "half a year ago" and "in half an hour"."""
    sign = -1 if found.said("side") == "ago" else 1
    if found.said("whole") == "year":
        return only(calendar.distant(found.now, 6 * sign, "month"))
    return only(calendar.distant(found.now, 30 * sign, "minute"))


_PERFECT: Final = re.compile(
    r"(?<!\bto )(?<!will )(?<!ould )\b(?:have|has|haven['’]?t|hasn['’]?t)\b|['’]ve\b|['’]s (?=been)",
    re.ASCII | re.IGNORECASE,
)
_OTHER_SUBJECT: Final = re.compile(r"\S\s+(?:i|he|she|we|they|it|you|that|who)\b", re.ASCII | re.IGNORECASE)
_PERFECT_AFTER: Final = re.compile(
    r"(?: now)?,? (?:now,? )?(?:i|we|he|she|they|it|you)(?:['’]ve| have|['’]s been| has)\b", re.ASCII | re.IGNORECASE
)


def for_so_long(found: Found) -> Reading | None:
    """Read "for three years" if its sentence has a perfect tense."""
    *_, tail = [None, *_PERFECT.finditer(found.before)]
    within = tail is not None and not _OTHER_SUBJECT.search(found.before[tail.end() :].lstrip())
    if not within and not (found.before.strip() == "" and _PERFECT_AFTER.match(found.after)):
        return None
    return only(calendar.lasting(found.now, -_number(found), _unit(found)))


def run(found: Found) -> Reading | None:
    """Read "in the last two weeks" and "the next three days"."""
    if not found.said("n") and found.said("way") in ("next", "last") and not found.said("in"):
        return None
    sign = 1 if found.said("way") in ("next", "coming", "following") else -1
    return only(calendar.lasting(found.now, sign * _number(found), _unit(found)))


def calendar_date(found: Found) -> Reading | None:
    """Read "14 June 2025" and "March 3rd". "may" and "march" before a number may be verbs."""
    month, day = _which(found, "month", MONTHS) + 1, int(found.said("day"))
    if found.match["month"] in ("may", "march") and found.match[0].endswith(found.said("day")):
        return None
    if year := found.said("year"):
        return only(calendar.day(date(int(year), month, day)))
    return by_tense(lambda today: calendar.dates_around(today, month, day))


def days_of_month(found: Found) -> Reading | None:
    """Read "from 3 to 7 July" and "May 22-24"."""
    month, first, last = (_which(found, "month", MONTHS) + 1, int(found.said("day")), int(found.said("last")))
    if first > last:
        return None
    if year := found.said("year"):
        return only(calendar.days(date(int(year), month, first), _after(int(year), month, last), "day"))
    return by_tense(
        lambda today: [
            calendar.days(date(today.year + step, month, first), _after(today.year + step, month, last), "day")
            for step in (-1, 0, 1)
        ]
    )


def _after(year: int, month: int, day: int) -> date:
    return calendar.day(date(year, month, day)).end.date()


def written(found: Found) -> Reading:
    return only(calendar.day(date(*(int(found.said(name)) for name in ("year", "number", "day")))))


def day_of_that_month(found: Found) -> Reading:
    """Read "the 15th of next month"."""
    first = calendar.month_from(found.today, _step(found)).start.date()
    return only(calendar.day(first.replace(day=int(found.said("day")))))


def numbered(found: Found) -> Reading | None:
    """Read 15.03.2026, and 15/03/2026 or 3/15/2026 if only one of both orders is a date."""
    first, second, year = (int(found.said(name)) for name in ("first", "second", "year"))
    if found.said("mark") == "/" and max(first, second) <= 12 and first != second:
        return None
    day, month = (second, first) if found.said("mark") == "/" and second > 12 else (first, second)
    return only(calendar.day(date(year, month, day)))


def nth(found: Found) -> Reading | None:
    day = int(found.said("day"))
    return by_tense(lambda today: calendar.days_of_month_around(today, day)) if 1 <= day <= 31 else None


def _part_of(found: Found, month: Span) -> Span:
    said = found.said("early") or found.said("border")
    part = {"beginning": "early", "start": "early", "middle": "mid"}.get(said, said)
    return calendar.part_of_month(month, part) if part else month


#: What makes a month of "may" in lower case: "this may" goes on with a verb.
_BEFORE_MAY: Final = re.compile(r"(?:in|since|until|till|last|next|early|mid|late)\b")


def month(found: Found) -> Reading | None:
    """Read "in March", "in late November 2025", "next March", "at the end of May"."""
    which = _which(found, "month", MONTHS) + 1
    if found.match["month"] == "may" and not _BEFORE_MAY.match(found.match[0]):
        return None
    if year := found.said("year"):
        return only(_part_of(found, calendar.month(int(year), which)))

    def around(today: date) -> list[Span]:
        return [_part_of(found, calendar.month(today.year + step, which)) for step in (-2, -1, 0, 1)]

    return _each_year(found, around)


def months(found: Found) -> Reading:
    """Read "from June to August"."""
    first, last = _which(found, "month", MONTHS), _which(found, "last", MONTHS)
    count = (last - first) % 12 + 1
    if year := found.said("year"):
        return only(calendar.months(int(year) - (last < first), first + 1, count, "month"))
    return by_tense(
        lambda today: [calendar.months(today.year + step, first + 1, count, "month") for step in (-2, -1, 0, 1)]
    )


def _each_year(found: Found, around: Spans) -> Reading | None:
    """Read "last", "this" or "next" before what returns every year. "This" is what goes on, or that of this year."""
    way = found.said("way")
    if not way:
        return by_tense(around)
    if way == "this":
        spans = around(found.today)
        now = [span for span in spans if span.start <= found.now < span.end]
        return only(next(iter(now or [span for span in spans if span.start.year == found.today.year])))
    span = calendar.directed(around(found.today), found.today, way == "next")
    return None if span is None else only(span)


def season(found: Found) -> Reading | None:
    said = found.said("season").replace("fall", "autumn")
    if year := found.said("year"):
        return only(calendar.season(int(year), said))
    return _each_year(found, lambda today: [calendar.season(today.year + step, said) for step in (-2, -1, 0, 1, 2)])


def holiday(found: Found) -> Reading | None:
    said = " ".join(found.said("holiday").replace("’", "'").split())
    month, day = HOLIDAYS[said.replace("'", "")]
    if year := found.said("year"):
        return only(calendar.day(date(int(year), month, day)))
    return _each_year(found, lambda today: calendar.dates_around(today, month, day))


def border(found: Found) -> Reading:
    """Read "at the end of the month" and "by the end of next year"."""
    step, part = _STEPS.get(found.said("way"), 0), found.said("border")
    if found.said("period") == "month":
        return only(_part_of(found, calendar.month_from(found.today, step)))
    year = found.today.year + step
    return only(calendar.part_of_year(year, "end" if part == "end" else "early"))


def half_of_year(found: Found) -> Reading:
    year = int(found.said("year")) if found.said("year") else found.today.year + _STEPS.get(found.said("way"), 0)
    return only(calendar.half(year, 1 if found.said("half") == "first" else 2))


def quarter(found: Found) -> Reading:
    year = int(found.said("year") or found.today.year)
    return only(calendar.quarter(year, int(found.said("quarter") or found.said("quarter_"))))


def _hour(said: str, half: str) -> int:
    """Return the hour of 24 of "5" or "5:30" with am, pm or none of both. Raises `ValueError`."""
    hour = int(said.partition(":")[0])
    if not half:
        return hour
    if hour > 12:
        raise ValueError(f"no hour of twelve: {hour}")
    return hour % 12 + (12 if half.startswith("p") else 0)


def clock(found: Found) -> Reading | None:
    """Read "at 5pm" and "19:30"."""
    half, hour = found.said("half"), _hour(found.said("hour"), found.said("half"))
    if hour > 24 or int(found.said("minute") or 0) > 59:
        return None
    if not found.said("at") and found.before.lower().endswith("the "):  # the 7:45 train
        return None
    return Reading(hours=Hours(hour, hour + 1, alone=bool(half or found.said("at")) or len(found.said("hour")) == 2))


def hours(found: Found) -> Reading | None:
    """Read "9am-5pm" and "from 2 to 4pm"."""
    last = _hour(found.said("last"), found.said("last_half"))
    first = _hour(found.said("hour"), found.said("half") or found.said("last_half"))
    if first >= last and not found.said("half"):
        first = _hour(found.said("hour"), "")
    return Reading(hours=Hours(first, last, alone=True)) if first < last else None


def bare_hour(found: Found) -> Reading | None:
    """Read "at 8", which counts beside a part of a day only."""
    hour = int(found.said("hour"))
    return Reading(hours=Hours(hour, hour + 1, alone=False)) if hour < 24 else None


def year(found: Found) -> Reading:
    return only(calendar.year(int(found.said("year"))))


def years(found: Found) -> Reading | None:
    """Read "from 2015 to 2018"."""
    first, last = int(found.said("year")), int(found.said("last"))
    return only(calendar.years(first, last)) if first <= last else None


def decade(found: Found) -> Reading:
    first = int(found.said("decade") or 1990)
    return only(calendar.years(first, first + 9))


def the_weekend(found: Found) -> Reading:
    return by_tense(lambda today: [calendar.weekend(today, step) for step in (-1, 0, 1)])


def noon(found: Found) -> Reading:
    return Reading(hours=Hours(12, 13, alone=True))


def part_of_day(found: Found) -> Reading:
    return Reading(hours=Hours(*PARTS[found.said("part")], alone=False, part=True))
