"""Weekdays, months and days such as "tomorrow" that a text names, in several languages, as values of one calendar."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_UNSPACED: Final = re.compile("[\u3040-\u9fff\uac00-\ud7a3]")


class CalendarWord(NamedTuple):
    """A weekday (0 is Monday), a month, or a day as its distance from the day of the text."""

    kind: str
    value: int


def calendar_words(text: str) -> frozenset[CalendarWord]:
    """Return what a text names.

    >>> sorted(calendar_words("bis Freitag, 明天"))
    [CalendarWord(kind='day', value=1), CalendarWord(kind='weekday', value=4)]
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    spaced, unspaced = _listed()
    found = {spaced[word] for word in _WORD.findall(plain) if word in spaced}
    if unspaced and _UNSPACED.search(plain):
        found.update(named for pattern, named in unspaced if pattern.search(plain))
    return frozenset(found)


def words_of_date(day: date, today: date) -> frozenset[CalendarWord]:
    """Return all words that name a day: its weekday, its month, and its distance from today."""
    return frozenset(
        (
            CalendarWord("weekday", day.weekday()),
            CalendarWord("month", day.month),
            CalendarWord("day", (day - today).days),
        )
    )


@cache
def _listed() -> tuple[dict[str, CalendarWord], list[tuple[re.Pattern[str], CalendarWord]]]:
    spaced: dict[str, CalendarWord] = {}
    unspaced: list[tuple[re.Pattern[str], CalendarWord]] = []
    for line in Path(__file__).with_name("calendar_words.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        kind, value, *words = line.split()
        named = CalendarWord(kind, int(value))
        spaced |= {word.casefold(): named for word in words if not _UNSPACED.search(word)}
        for word in filter(_UNSPACED.search, words):
            bounded = rf"(?<![\d十]){word}" if kind == "month" else word
            unspaced.append((re.compile(bounded), named))
    return spaced, unspaced
