"""Reads the time expressions of a text by the rules of one language.

A rule is a pattern and a function that reads what it found. The function returns a `Reading`: a span, spans of which
the tense of the sentence chooses one ("on Friday"), or hours of a day that is named beside them ("at 5pm").

Matches are ordered, and of overlapping ones the first and longest stays. Then neighbours are joined: "tomorrow" and
"at 5pm" are one hour, "Monday" and "Wednesday" with "to" between them are three days.

Time and memory are linear in the length of the text (but for sorting the matches): no pattern repeats without a
bound, and each match is looked at with at most `_NEAR` characters on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import islice
from typing import Final, NamedTuple

from tables.time_expressions.calendar import Span, day_from, hours, nearest

#: This many characters before and after an expression are read for its tense.
_NEAR: Final = 120
#: At most this many matches of each pattern are read.
_MOST_MATCHES: Final = 16
#: Joined expressions have at most this many characters between them.
_GAP: Final = 16


class Hours(NamedTuple):
    """Hours of a day. `alone` is false for those that count beside a day only, such as "in the morning"."""

    first: int
    after: int
    alone: bool
    part: bool = False


Spans = Callable[[date], list[Span]]
"""A function that returns the spans around a day that an expression may mean, in the order of time."""


class Reading(NamedTuple):
    """What an expression may mean. If it has no `spans`, its hours are those of a day that is named elsewhere."""

    spans: Spans | None = None
    hours: Hours | None = None
    by_tense: bool = False


def only(span: Span) -> Reading:
    return Reading(lambda _: [span])


def by_tense(spans: Spans) -> Reading:
    return Reading(spans, by_tense=True)


@dataclass(frozen=True, slots=True)
class Found:
    """An expression that a pattern has found, the local time at which the text was said, and the text around it."""

    match: re.Match[str]
    now: datetime
    before: str
    after: str
    language: Language

    @property
    def today(self) -> date:
        return self.now.date()

    @property
    def ahead(self) -> bool | None:
        """True if the sentence is about the future, False if it is about the past, None if it does not say."""
        return self.language.tense(self.before, self.match[0], self.after)

    def said(self, name: str) -> str:
        """Return a group of the pattern in lower case, or an empty text."""
        return (self.match.groupdict().get(name) or "").lower()


Rule = tuple[re.Pattern[str], Callable[[Found], Reading | None]]


class Language(NamedTuple):
    """The rules of a language.

    `tense` gets the text before an expression, the expression and the text after it. `habits` are words of sentences
    about what happens again and again: in these, expressions without a direction mean nothing. `again` are such words
    that stand right before an expression. `beside` may stand between a day and its hours, `between` between the two
    ends of a range, and `both` between them if `opened` stands before. `since` gets what `tense` gets.
    """

    rules: Sequence[Rule]
    tense: Callable[[str, str, str], bool | None]
    habits: re.Pattern[str]
    again: re.Pattern[str]
    sentence_end: re.Pattern[str]
    beside: re.Pattern[str]
    between: re.Pattern[str]
    both: re.Pattern[str]
    opened: re.Pattern[str]
    since: Callable[[str, str, str], bool]


@dataclass(frozen=True, slots=True)
class _Expression:
    found: Found
    start: int
    end: int
    reading: Reading
    until: Reading | None = None


def expressions(text: str, now: datetime, language: Language) -> Iterator[tuple[int, str, Span]]:
    """Yield the place, the words and the span of each time expression of a text, in its order."""
    whole = _ranges(text, _joined(text, _without_overlaps(_matches(text, now, language)), language), language)
    for place, one in enumerate(whole):
        try:
            span = _span(text, whole, place)
        except (ValueError, OverflowError):  # a date that does not exist, or years that `datetime` does not know
            continue
        if span is not None and span.start < span.end:
            yield one.start, text[one.start : one.end], span


def _matches(text: str, now: datetime, language: Language) -> Iterator[_Expression]:
    for pattern, read in language.rules:
        for match in islice(pattern.finditer(text), _MOST_MATCHES):
            start, end = match.span()
            *_, before = language.sentence_end.split(text[max(0, start - _NEAR) : start])
            after, *_ = language.sentence_end.split(text[end : end + _NEAR], maxsplit=1)
            found = Found(match, now, before, after, language)
            try:
                reading = read(found)
            except (ValueError, OverflowError):
                continue
            if reading is None or _happens_again(found, reading):
                continue
            yield _Expression(found, start, end, reading)


def _happens_again(found: Found, reading: Reading) -> bool:
    if found.language.again.search(found.before):
        return True
    vague = reading.by_tense or reading.spans is None
    return vague and any(found.language.habits.search(part) for part in (found.before, found.after))


def _without_overlaps(matches: Iterator[_Expression]) -> list[_Expression]:
    """Keep the first and longest of overlapping ones. Hours that do not count alone give way to all others."""
    kept: list[_Expression] = []
    for one in sorted(matches, key=lambda one: (one.start, -one.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
        elif _gives_way(kept[-1].reading) and not _gives_way(one.reading):
            kept[-1] = one
    return kept


def _gives_way(reading: Reading) -> bool:
    return reading.spans is None and not (reading.hours and reading.hours.alone)


def _joined(text: str, parts: list[_Expression], language: Language) -> list[_Expression]:
    """Join days and their hours."""
    whole: list[_Expression] = []
    for one in parts:
        if whole and one.start - whole[-1].end <= _GAP:
            last = whole[-1]
            if language.beside.fullmatch(text, last.end, one.start) and (both := _day_and_hours(last, one)):
                whole[-1] = replace(last, end=one.end, reading=both)
                continue
        whole.append(one)
    return whole


def _day_and_hours(first: _Expression, second: _Expression) -> Reading | None:
    one, other = first.reading, second.reading
    if one.spans is None and other.spans is None:
        return None
    if one.spans is not None and other.spans is not None:
        return None
    day, clock = (one, other.hours) if one.spans is not None else (other, one.hours)
    if clock is None or (day.hours is not None and not day.hours.part) or not _is_day(day, first.found.today):
        return None
    return day._replace(hours=_of_part(clock, day.hours))


def _of_part(clock: Hours, part: Hours | None) -> Hours:
    """Return a time of the clock as one of the evening if it is said so: "this evening at 8"."""
    if part is None or clock.part or clock.first >= 12 or part.first < 12:
        return clock
    return clock._replace(first=clock.first + 12, after=clock.after + 12)


def _is_day(reading: Reading, today: date) -> bool:
    spans = reading.spans(today) if reading.spans else []
    return bool(spans) and spans[0].is_one_day


def _ranges(text: str, parts: list[_Expression], language: Language) -> list[_Expression]:
    """Join the two ends of a range."""
    whole: list[_Expression] = []
    for one in parts:
        if whole and whole[-1].until is None and one.start - whole[-1].end <= _GAP:
            last = whole[-1]
            opened = language.opened.search(text, max(0, last.start - _GAP), last.end)
            between = language.between.match(text, last.end, one.end)  # "until Monday" holds the word between
            if (between and between.end() >= one.start) or (
                opened and language.both.fullmatch(text, last.end, one.start)
            ):
                whole[-1] = replace(last, end=one.end, until=one.reading)
                continue
        whole.append(one)
    return whole


def _span(text: str, whole: list[_Expression], place: int) -> Span | None:
    one = whole[place]
    found, reading, until = one.found, one.reading, one.until
    today, after = found.today, text[one.end : one.end + _NEAR]
    if reading.spans is None:
        if reading.hours is None or not (reading.hours.alone or until):
            return None
        day = _chosen(until._replace(hours=None), today, bool(found.ahead)) if until and until.spans else None
        reading = reading._replace(spans=only(day or _day_of_others(text, whole, place)).spans)
    if until is not None:
        return _range(found, reading, until)
    if found.language.since(found.before, text[one.start : one.end], after):
        span = _chosen(reading, today, False)
        tomorrow = day_from(today, 1).start
        return span._replace(end=tomorrow) if span is not None and span.start < tomorrow else span
    return _chosen(reading, today, bool(found.ahead))


def _chosen(reading: Reading, around: date, ahead: bool) -> Span | None:
    """Return the span that is meant. If it is a day with hours, return these."""
    spans = reading.spans(around) if reading.spans else []
    span = nearest(spans, around, ahead) if reading.by_tense else next(iter(spans), None)
    if span is None or reading.hours is None:
        return span
    return hours(span.start.date(), reading.hours.first, reading.hours.after)


def _day_of_others(text: str, whole: list[_Expression], place: int) -> Span:
    """Return the day before or after hours in the same sentence, or else today."""
    one = whole[place]
    today, ahead = one.found.today, bool(one.found.ahead)
    for other in whole[max(0, place - 1) : place + 2]:
        first, second = sorted((one, other), key=lambda it: it.start)
        if other is one or other.reading.spans is None or second.start - first.end > _NEAR:
            continue
        if one.found.language.sentence_end.search(text, first.end, second.start):
            continue
        day = _chosen(other.reading._replace(hours=None), today, ahead)
        if day is not None and day.is_one_day:
            return day
    return day_from(today, 0)


def _range(found: Found, first: Reading, last: Reading) -> Span | None:
    """Return the time from the begin of one end to the end of the other. Hours end where the last one begins."""
    today, ahead = found.today, bool(found.ahead)
    if last.hours is None:  # "at 6:30 from Monday to Friday" are days
        first = first._replace(hours=None)
    if last.spans is None:
        day = _chosen(first._replace(hours=None), today, ahead)
        if day is None:
            return None
        first, last = (one._replace(spans=only(day).spans, by_tense=False) for one in (first, last))
    begin: Span | None
    end: Span | None
    if last.by_tense and (ahead or not first.by_tense):
        begin = _chosen(first, today, True)
        end = _chosen(last, begin.start.date(), True) if begin else None
    else:
        end = _chosen(last, today, False)
        begin = _chosen(first, end.start.date(), False) if end else None
    if begin is None or end is None:
        return None
    return Span(begin.start, end.start if end.grain == "hour" else end.end, begin.grain)


def compiled(template: str, words: Mapping[str, str]) -> re.Pattern[str]:
    """Return the pattern of a rule. `{name}` stands for words of a language.

    A space stands for up to three of them, with `?` behind it for none as well.
    """
    written = re.sub(r"\{([a-z_]+)\}", lambda name: words[name[1]], template)
    return re.compile(written.replace(" ?", r"\s{0,3}").replace(" ", r"\s{1,3}"), re.ASCII | re.IGNORECASE)
