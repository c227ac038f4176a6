"""Resolves the time expressions of a text to windows of time: "last week", "in March", 上个月.

English and Chinese have rules. A text with Latin letters is read by the English ones, a text with Han characters by
the Chinese ones, and a mixed text by both. Texts in other languages have no windows.

benchmarks/times/README.md says what each kind of expression means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Final, NamedTuple

from tables.time_expressions.calendar import Grain, Span
from tables.time_expressions.chinese import CHINESE
from tables.time_expressions.english import ENGLISH
from tables.time_expressions.reader import expressions

#: Windows are stored with memories, so raise this number whenever a rule of this folder changes.
RULES: Final = 1
MOST_WINDOWS: Final = 4
#: Windows outside of these years are dropped, as messages are (`schemas.times`).
_EARLIEST, _LATEST = datetime(1990, 1, 1), datetime(2100, 1, 1)

_HAN: Final = re.compile("[\u4e00-\u9fff]")
_LATIN: Final = re.compile("[A-Za-z]")
#: Every expression has one of these: a part of a word, a word, or a number with what follows. As three patterns they
#: take half the time of one, for the engine skips ahead to the first characters of a pattern only if all are alike.
_PARTS: Final = re.compile(
    "day|tonight|tomorrow|noon|night|morning|evening|minute|hour|week|month|year|spring|summer|autumn|winter|nineties"
    "|christmas|halloween|年|月|周|号|日|天|晚|今|明|昨|早|夏|冬|节|星期|礼拜|小时|分钟|钟头|点|上午|下午|中午|夜"
    "|凌晨|清晨|傍晚|元旦|国庆|圣诞|除夕|端午|中秋|季度"
)
_WORDS: Final = re.compile(
    r"\b(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|january|february|march|april|may|june|july|august|september"
    r"|october|november|december|mon|tues?|wed|thu|thurs?|fri|sat|mins?|hrs?|yrs?|fall|half|tmrw?|q[1-4])\b",
    re.ASCII,
)
_NUMBERS: Final = re.compile(r"[0-9](?:[0-9]{3}|[:：][0-9]| ?[ap]\.?m|st|nd|rd|th|0s)")


class Window(NamedTuple):
    """A window of time `[start, end)` (epoch ms) that `text`, a part of the message, is about."""

    start: int
    end: int
    grain: Grain
    text: str


def may_have_times(text: str) -> bool:
    """Return False if a text has no time expression for certain. Microseconds for a message."""
    lowered = text.lower()
    return any(pattern.search(lowered) for pattern in (_PARTS, _NUMBERS, _WORDS))


def windows_of(text: str, said_at: int, zone: tzinfo) -> list[Window]:
    """Return the windows of the first four time expressions of a text that mean different times.

    `said_at` (epoch ms, as `parse_timestamp` accepts it) is when the text was said, `zone` that of its user.
    The windows begin and end at midnight or at an hour of that zone, and lie between the years 1990 and 2100.

    >>> said = parse_timestamp("2026-03-14T18:05:00+01:00")
    >>> [found] = windows_of("We met last Friday", said, ZoneInfo("Europe/Oslo"))
    >>> iso(found.start), iso(found.end), found.grain
    ('2026-03-05T23:00:00.000Z', '2026-03-06T23:00:00.000Z', 'day')
    """
    if not may_have_times(text):
        return []
    now = datetime.fromtimestamp(said_at / 1000, zone).replace(tzinfo=None)
    found: dict[tuple[int, int, Grain], Window] = {}
    for words, span in _in_order(text, now):
        if not _EARLIEST <= span.start < span.end <= _LATEST:
            continue
        start, end = (_millis(moment, zone) for moment in (span.start, span.end))
        if start < end:  # the clocks may skip an hour
            found.setdefault((start, end, span.grain), Window(start, end, span.grain, words.strip()))
        if len(found) == MOST_WINDOWS:
            break
    return list(found.values())


def _in_order(text: str, now: datetime) -> Iterator[tuple[str, Span]]:
    both: list[tuple[int, str, Span]] = []
    if _LATIN.search(text) or not _HAN.search(text):
        both += expressions(text, now, ENGLISH)
    if _HAN.search(text):
        both += expressions(text, now, CHINESE)
    reached = 0
    for start, words, span in sorted(both, key=lambda one: (one[0], -len(one[1]))):
        if start >= reached:  # both languages read "2026-03-14"
            reached = start + len(words)
            yield words, span


def _millis(local: datetime, zone: tzinfo) -> int:
    """Return the epoch milliseconds of a local time. One that the clocks skip is the moment when they did."""
    return round(local.replace(tzinfo=zone).timestamp() * 1000)
