"""What a message holds that a line of a model may state: words, numbers and times."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from functools import cached_property

from schemas.exchanges import Message
from streams.summaries.grounding.calendar_words import CalendarWord, calendar_words, words_of_date
from streams.summaries.grounding.stated_numbers import known_numbers
from streams.summaries.grounding.word_stems import stems
from tables.time_expressions.windows import Window, windows_of


@dataclass(frozen=True, eq=False)
class SpokenMessage:
    """A message, and what it holds. `zone` is the time zone in which its user counts days."""

    message: Message
    zone: tzinfo

    @cached_property
    def text(self) -> str:
        """The name of the speaker, if it is known, and the content."""
        said = self.message
        return plain(f"{said.name}: {said.content}" if said.name else said.content)

    @cached_property
    def folded(self) -> str:
        return self.text.casefold()

    @cached_property
    def stems(self) -> frozenset[str]:
        return stems(self.text)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The forms of its numbers, and the year in which it was said."""
        return known_numbers(self.text) | {str(self.today.year)}

    @cached_property
    def windows(self) -> list[Window]:
        return windows_of(self.message.content, self.message.timestamp, self.zone)

    @property
    def today(self) -> date:
        return self._day_of(self.message.timestamp)

    @cached_property
    def calendar(self) -> frozenset[CalendarWord]:
        """The calendar words of the message, and all those of each single day that it names."""
        said = calendar_words(self.text)
        days = {self.today + timedelta(word.value) for word in said if word.kind == "day"}
        days |= {self._day_of(window.start) for window in self.windows if window.grain in ("day", "hour")}
        return said.union(*(words_of_date(day, self.today) for day in days))

    def _day_of(self, moment: int) -> date:
        return datetime.fromtimestamp(moment / 1000, self.zone).date()


def plain(text: str) -> str:
    """Return a text in the Unicode form in which texts are compared."""
    return unicodedata.normalize("NFKC", text)


def numbers_of(messages: Collection[SpokenMessage]) -> frozenset[str]:
    return frozenset[str]().union(*(one.numbers for one in messages))


def named_by(word: CalendarWord, messages: Collection[SpokenMessage]) -> bool:
    """Return whether a message names a day or a month. Those of the conversation itself need not be named."""
    own = {("day", 0), *(("month", one.today.month) for one in messages)}
    return word in own or any(word in one.calendar for one in messages)
