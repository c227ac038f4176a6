"""Compares a line of a model with the messages of a day: do they hold what it states?

The comparison is one of words, so it cannot prove a line: "Ann teaches me" and "I teach Ann" have the same words. A
line may be put in other words, inflect them, write "tomorrow" as a date or "fifty" as 50. If the settings name
another language than that of its messages, only its numbers, times and identifiers are compared.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import tzinfo
from enum import StrEnum
from functools import cached_property
from typing import Final

from schemas.settings.agents import SummaryLanguage
from streams.language.scripts import script_of
from streams.summaries.grounding.calendar_words import CalendarWord, calendar_words
from streams.summaries.grounding.spoken_message import SpokenMessage, named_by, numbers_of, plain
from streams.summaries.grounding.stated_names import KnownNames, identifiers_in
from streams.summaries.grounding.stated_numbers import stated_numbers
from streams.summaries.grounding.word_stems import spaced_language_of, stems
from streams.summaries.rules.turns import Turn
from tables.time_expressions.windows import Window, windows_of

LEAST_HELD: Final = 0.2
"""The share of a line's words that the messages of the day have at least."""

NEAR_MESSAGES: Final = 2
"""Messages at this distance from a cited one may state a number of a line, as a question does for its answer."""

_RELATIVE: Final = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|(?:next|last|this|coming) \w+)\b"
    r"|[今明昨后前]天|[下上这本]个?(?:周|月|星期|礼拜)|[今明去后前]年",
    re.IGNORECASE,
)


class Fault(StrEnum):
    """The reason why a text of a model is cut."""

    SOURCE = "source"
    NUMBER = "number"
    TIME = "time"
    NAME = "name"
    WORDS = "words"
    REPEATED = "repeated"


class SpokenDay:
    """The messages of a day, prepared for comparisons. `language` is that of the summary, as the settings name it."""

    def __init__(self, turns: Sequence[Turn], zone: tzinfo, language: SummaryLanguage) -> None:
        self._zone, self._language = zone, language
        self._spoken = [SpokenMessage(message, zone) for turn in turns for message in turn.messages]
        self._place = {one.message.message_id: place for place, one in enumerate(self._spoken)}

    def fault_of(self, line: str, sources: Sequence[str]) -> Fault | None:
        """Return what a line states that no message holds; None if nothing is found. `sources` are its messages.

        Its numbers and times must be in one of these messages, in one near them, or in one with a word of the line.
        """
        text = plain(line)
        translated = self._is_translated(text, sources)
        near = self._spoken if translated else self._near(stems(text), sources)
        text, fault = self._without_times(text, sources, near)
        if fault:
            return fault
        numbers = numbers_of(near)
        if any(map(numbers.isdisjoint, stated_numbers(text))):
            return Fault.NUMBER
        if not all(map(self._names.has, identifiers_in(text))):
            return Fault.NAME
        if translated:
            return None
        if not self._names.states(text):
            return Fault.NAME
        words = stems(text)
        return Fault.WORDS if words and len(words & self._stems) < LEAST_HELD * len(words) else None

    def sources_of(self, line: str, sources: tuple[str, ...]) -> tuple[str, ...]:
        """Return the messages that a line cites; if none of them has a word of the line, the best one instead.

        The best message is the first one of those that have the most words of the line.
        """
        words = stems(plain(line))
        if self._is_translated(line, sources) or any(words & one.stems for one in self._cited(sources)):
            return sources
        best = max(self._spoken, key=lambda one: len(words & one.stems))
        return (best.message.message_id,) if words & best.stems else sources

    def _cited(self, sources: Sequence[str]) -> list[SpokenMessage]:
        return [self._spoken[self._place[source]] for source in sources]

    def _near(self, words: Collection[str], sources: Sequence[str]) -> list[SpokenMessage]:
        places = {self._place[source] for source in sources}
        return [
            one
            for place, one in enumerate(self._spoken)
            if any(abs(place - cited) <= NEAR_MESSAGES for cited in places) or not one.stems.isdisjoint(words)
        ]

    def _without_times(
        self, text: str, sources: Sequence[str], near: Collection[SpokenMessage]
    ) -> tuple[str, Fault | None]:
        """Return a line without the times that messages hold, and a fault if it names another time."""
        now = max(one.message.timestamp for one in self._cited(sources))
        for window in windows_of(text, now, self._zone):
            named = calendar_words(window.text)
            if not named and not _RELATIVE.search(window.text):
                continue
            if not _is_held(window, named, near):
                return text, Fault.TIME
            text = text.replace(window.text, " ")
        return text, None if all(named_by(word, near) for word in calendar_words(text)) else Fault.TIME

    def _is_translated(self, line: str, sources: Sequence[str]) -> bool:
        """Return whether a line is in another language than its messages, as far as scripts and the settings tell.

        If the settings name no language, it must be one of the day: a line in another script cannot be compared, and
        a model that writes one does not do as it is asked.
        """
        said = "\n".join(one.message.content for one in self._cited(sources))
        if self._language == "auto":
            script = script_of(line)
            return script in self._scripts and {script, script_of(said)} not in ({script}, {"zh", "ja"})
        if self._language != "en":
            return script_of(said) != self._language
        return script_of(said) is not None or (spaced_language_of(said) or self._spaced_language) not in ("en", "")

    @cached_property
    def _scripts(self) -> frozenset[str | None]:
        return frozenset(script_of(one.message.content) for one in self._spoken)

    @cached_property
    def _spaced_language(self) -> str:
        return spaced_language_of(self._text)

    @cached_property
    def _text(self) -> str:
        return "\n".join(one.text for one in self._spoken)

    @cached_property
    def _names(self) -> KnownNames:
        return KnownNames(self._text)

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset[str]().union(*(one.stems for one in self._spoken))


def _is_held(window: Window, named: Collection[CalendarWord], near: Collection[SpokenMessage]) -> bool:
    """Return whether a time of a line is in one of the messages, in these words or in others."""
    said = window.text.casefold()
    if any(said in one.folded for one in near):
        return True
    if any(window.start <= held.start and held.end <= window.end for one in near for held in one.windows):
        return True
    if not named or not all(named_by(word, near) for word in named):
        return False
    return not any(map(numbers_of(near).isdisjoint, stated_numbers(window.text)))
