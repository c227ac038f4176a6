"""Libraries that resolve time expressions, each as a function from a line to the windows that it finds.

Most libraries return a moment instead of a window. It is widened as the words that they found say ("last month" gives
the month of the moment), so that no library fails for the lack of windows. If a library returns several readings of
one expression, all of them are kept, and the expression is right if one of them is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, tzinfo
from importlib import import_module
from typing import Any, Final

from tables.time_expressions import calendar
from tables.time_expressions.windows import windows_of

Ends = tuple[datetime, datetime]
Expressions = list[set[Ends]]
"""For each expression, the windows that it may mean, in local time."""

Contender = Callable[[str, int, tzinfo], Expressions]
"""A function of a text, when it was said (epoch ms), and the time zone of its user."""

_HOUR: Final = re.compile(r"\d ?[ap]\.?m|\d:\d\d|hour|minute|noon|点|小时|分钟", re.IGNORECASE)
_DAY: Final = re.compile(
    r"day|yesterday|tomorrow|\d(?:st|nd|rd|th)|(?<!\d)\d{1,2} ?(?:[a-z]{3,9}\b)?$|[a-z]{3,9} \d{1,2}\b(?!\d)|-\d+-\d"
    r"|天|号|日|周[一二三四五六]|(?:星期|礼拜)[一二三四五六]",
    re.IGNORECASE,
)
_WEEK: Final = re.compile(r"week|周|星期|礼拜", re.IGNORECASE)
_MONTH: Final = re.compile(
    r"month|月|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\b", re.IGNORECASE
)
_YEAR: Final = re.compile(r"year|年|(?:19|20)\d\d", re.IGNORECASE)


def ends(span: calendar.Span) -> Ends:
    return span.start, span.end


def widened(words: str, moment: datetime) -> Ends:
    """Return the hour, day, week, month or year around a moment, as the words of the expression say."""
    moment = moment.replace(tzinfo=None)
    day = moment.date()
    if _HOUR.search(words):
        return ends(calendar.hours(day, moment.hour, moment.hour + 1))
    if _DAY.search(words):
        return ends(calendar.day(day))
    if _WEEK.search(words):
        return ends(calendar.week(day, 0))
    if _MONTH.search(words):
        return ends(calendar.month(day.year, day.month))
    return ends(calendar.year(day.year) if _YEAR.search(words) else calendar.day(day))


def local(said_at: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(said_at / 1000, zone).replace(tzinfo=None)


def ours() -> Contender:
    def find(text: str, said_at: int, zone: tzinfo) -> Expressions:
        return [{(local(one.start, zone), local(one.end, zone))} for one in windows_of(text, said_at, zone)]

    return find


def dateparser(language: str) -> Contender:
    search: Any = import_module("dateparser.search")

    def find(text: str, said_at: int, zone: tzinfo) -> Expressions:
        settings = {"RELATIVE_BASE": local(said_at, zone)}
        found = search.search_dates(text, languages=[language], settings=settings) or []
        return [{widened(words, moment)} for words, moment in found]

    return find


def recognizers(culture: str) -> Contender:
    library: Any = import_module("recognizers_date_time")

    def find(text: str, said_at: int, zone: tzinfo) -> Expressions:
        now = local(said_at, zone)
        found = library.recognize_datetime(text, getattr(library.Culture, culture), reference=now)
        read = [{_resolved(one, now) for one in (each.resolution or {}).get("values", ())} for each in found]
        return [windows for each in read if (windows := {one for one in each if one is not None})]

    return find


def _resolved(value: dict[str, str], now: datetime) -> Ends | None:
    """Return the window of one value of the recognizers. Durations and "not resolved" are none."""
    try:
        if value["type"] in ("daterange", "datetimerange", "timerange"):
            start, end = (_moment(value[name], now) for name in ("start", "end"))
            return (start, end) if start < end else None
        if value["type"] == "date":
            return ends(calendar.day(_moment(value["value"], now).date()))
        if value["type"] in ("datetime", "time"):
            moment = _moment(value["value"], now)
            return ends(calendar.hours(moment.date(), moment.hour, moment.hour + 1))
    except (KeyError, ValueError):
        return None
    return None


def _moment(text: str, now: datetime) -> datetime:
    return datetime.fromisoformat(text) if "-" in text else datetime.combine(now, time.fromisoformat(text))


def parsedatetime() -> Contender:
    library: Any = import_module("parsedatetime").Calendar()

    def find(text: str, said_at: int, zone: tzinfo) -> Expressions:
        found = library.nlp(text, local(said_at, zone)) or ()
        return [{widened(f"{words} 1:00" if kind > 1 else words, moment)} for moment, kind, _, _, words in found]

    return find


def ctparse() -> Contender:
    library: Any = import_module("ctparse")

    def find(text: str, said_at: int, zone: tzinfo) -> Expressions:
        now = local(said_at, zone)
        found = library.ctparse(text, ts=now)
        read = None if found is None else found.resolution
        if read is None:
            return []
        first, last = (getattr(read, name, read) or read for name in ("t_from", "t_to"))
        begin, end = _of_parts(first, now), _of_parts(last, now)
        return [{(begin[0], end[1])}] if begin and end else []

    return find


def _of_parts(read: Any, now: datetime) -> Ends | None:
    """Return the window of a time of ctparse, which may lack its smaller parts."""
    year, month, day, hour = (getattr(read, name, None) for name in ("year", "month", "day", "hour"))
    try:
        if day and month:
            which = date(year or now.year, month, day)
            return ends(calendar.day(which) if hour is None else calendar.hours(which, hour, hour + 1))
        if hour is not None:
            return ends(calendar.hours(now.date(), hour, hour + 1))
        if month:
            return ends(calendar.month(year or now.year, month))
        return ends(calendar.year(year)) if year else None
    except ValueError:
        return None


def timefhuman() -> Contender:
    library: Any = import_module("timefhuman")

    def find(text: str, said_at: int, zone: tzinfo) -> Expressions:
        options = library.tfhConfig(now=local(said_at, zone), return_matched_text=True)
        read = []
        for words, _, value in library.timefhuman(text, options):
            moments = value if isinstance(value, tuple) else (value, value)
            if all(isinstance(one, datetime) for one in moments):
                read.append({(widened(words, moments[0])[0], widened(words, moments[-1])[1])})
        return read

    return find


def jionlp() -> Contender:
    library: Any = import_module("jionlp")

    def find(text: str, said_at: int, zone: tzinfo) -> Expressions:
        read = []
        for one in library.ner.extract_time(text, time_base=local(said_at, zone).timestamp()):
            if one["type"] in ("time_point", "time_span"):
                start, end = (datetime.fromisoformat(moment) for moment in one["detail"]["time"])
                read.append({(start, end + timedelta(seconds=1))})
        return read

    return find


#: For each language, the contenders by name. Each is made when it is asked for, and raises `ImportError` then.
CONTENDERS: Final[dict[str, dict[str, Callable[[], Contender]]]] = {
    "en": {
        "Siltstone": ours,
        "dateparser": lambda: dateparser("en"),
        "recognizers-text-date-time": lambda: recognizers("English"),
        "ctparse": ctparse,
        "parsedatetime": parsedatetime,
        "timefhuman": timefhuman,
    },
    "zh": {
        "Siltstone": ours,
        "dateparser": lambda: dateparser("zh"),
        "recognizers-text-date-time": lambda: recognizers("Chinese"),
        "jionlp": jionlp,
    },
}
