"""Topics of a day: the day is cut where something new comes up, and each part is named by a noun phrase of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from schemas.conversations import Role
from schemas.summaries import FEWEST_TOPICS, MOST_TOPICS, Topic
from streams.summaries.rules.noun_phrases import NounPhrase, read_clause
from streams.summaries.rules.sentences import Sentence
from streams.summaries.rules.tagging import tongue_of
from streams.summaries.rules.talk import Talk, alike

NEW, SHARED, ASKED, REPLIED = 0.4, -0.5, 0.7, -1.2
"""What speaks for a new topic in a turn, and against it.

For it: each new noun of the user (`NEW`), a question (`ASKED`). Against it: each word of the user that the turn
before has (`SHARED`), and a long reply in the turn before, which calls for more (`REPLIED`, for `LONG_REPLY` words).
A sum above zero begins a topic.
"""

MOST_COUNTED: Final = 3
"""More new nouns, or more shared words, do not count."""

LONG_REPLY: Final = 10

REPLY: Final = 0.4
"""How much a noun in a message of the assistant counts, compared with one of the user."""

WHOLE_DAY: Final = 0.4
"""How much each clause of the day that has the noun counts, compared with a message of the topic's own turns."""

FIRST: Final = 1.0
QUESTION: Final = 0.6
"""Added to a phrase that the user says in the topic's first turn, and to one in a question."""

SIZES: Final = (0.8, 1.0, 1.0, 0.85)
"""Factors for phrases of one, two, three, and more words: one word says little, many say too much."""

BY_ASSISTANT: Final = 0.8
"""A factor for a phrase that the assistant said."""

LEAST_WORTH, ENOUGH = 2.0, 2.2
"""The worth that a topic's best phrase has at least: the second one if there are `FEWEST_TOPICS` better topics.

A word that the user says once, in no question, has 2.1 where it opens a topic.
"""


class _Clause(NamedTuple):
    """What a clause names."""

    sentence: Sentence
    asked: bool
    phrases: tuple[NounPhrase, ...]
    keys: frozenset[str]

    @property
    def by_user(self) -> bool:
        return self.sentence.by_user


_Turn = list[_Clause]
_Part = list[_Turn]


class _Named(NamedTuple):
    worth: float
    phrase: NounPhrase
    said: _Clause


def topics(talk: Talk) -> tuple[Topic, ...]:
    """Return at most five topics, those of the highest worth, in order of appearance.

    There are fewer if fewer parts of the day name anything. Small talk and code name nothing. Words of the assistant
    only name a topic if the user's words are about it, or if the assistant speaks alone.
    """
    turns = [list(group) for _, group in groupby(_clauses(talk), key=lambda one: one.sentence.turn.number)]
    parts = _parts([turn for turn in turns if any(map(_counts, turn))])
    in_day = Counter(key for turn in turns for one in turn for key in _nouns([one]))
    named = [(name, part) for part in parts if (name := _name(part, in_day))]
    named.sort(key=lambda one: -one[0].worth)
    found: list[tuple[_Named, _Part]] = []
    for name, part in named:
        same = next((place for place, (other, _) in enumerate(found) if _same(name, other)), None)
        if same is not None:
            found[same] = found[same][0], [*found[same][1], *part]
        elif name.worth >= (LEAST_WORTH if len(found) < FEWEST_TOPICS else ENOUGH):
            found.append((name, part))
    return tuple(sorted((_topic(*one) for one in found[:MOST_TOPICS]), key=lambda topic: topic.turns))


def _same(one: _Named, other: _Named) -> bool:
    """True if two parts are about the same: their names have a word in common, or one is part of the other."""
    return not set(one.phrase.keys).isdisjoint(other.phrase.keys) or alike(one.phrase.text, other.phrase.text)


def _clauses(talk: Talk) -> Iterator[_Clause]:
    """Yield the clauses of both speakers, without small talk."""
    for place, sentence in enumerate(talk.sentences):
        tongue = tongue_of(sentence.message.content)
        for clause, text in enumerate(sentence.opened):
            if not sentence.code and len(text) > 1 and not talk.idle(place, clause):
                yield _Clause(sentence, clause >= sentence.told, *read_clause(text, tongue))


def _counts(one: _Clause) -> bool:
    """True for a clause of the user, and for one of the assistant if the user says nothing in the turn."""
    return one.by_user or all(message.role is not Role.USER for message in one.sentence.turn.messages)


def _parts(turns: Sequence[_Turn]) -> list[_Part]:
    """Cut the day into parts: see `NEW`. Consecutive turns are in one part."""
    parts: list[_Part] = []
    for place, turn in enumerate(turns):
        if not place or _begins(turn, turns[place - 1]):
            parts.append([])
        parts[-1].append(turn)
    return parts


def _begins(turn: _Turn, before: _Turn) -> bool:
    user = [one for one in turn if _counts(one)]
    signs = (
        NEW * min(MOST_COUNTED, len(_nouns(user) - _nouns(before))),
        SHARED * min(MOST_COUNTED, len(_keys(user) & _keys(before))),
        ASKED * any(one.asked for one in user),
        REPLIED * min(1.0, len(_keys(one for one in before if not one.by_user)) / LONG_REPLY),
    )
    return sum(signs) > 0


def _nouns(clauses: Iterable[_Clause]) -> set[str]:
    return {key for one in clauses for phrase in one.phrases for key in phrase.keys}


def _keys(clauses: Iterable[_Clause]) -> set[str]:
    return {key for one in clauses for key in one.keys}


def _name(part: _Part, in_day: Mapping[str, int]) -> _Named | None:
    """Return the best phrase of a part: its words recur, stand in a question, or open the part."""
    messages: dict[str, dict[str, float]] = {}
    clauses = [one for turn in part for one in turn]
    for one in clauses:
        for key in _nouns([one]):
            messages.setdefault(key, {})[one.sentence.message.message_id] = 1.0 if _counts(one) else REPLY
    best: _Named | None = None
    for one in clauses:
        opens = _counts(one) and one in part[0]
        for phrase in one.phrases:
            said = sum(sum(messages[key].values()) + WHOLE_DAY * in_day[key] for key in phrase.keys)
            worth = said / len(phrase.keys) * SIZES[min(phrase.size, len(SIZES)) - 1]
            worth = (worth + FIRST * opens + QUESTION * one.asked) * (1.0 if _counts(one) else BY_ASSISTANT)
            if worth >= LEAST_WORTH and (best is None or worth > best.worth):
                best = _Named(worth, phrase, one)
    return best


def _topic(name: _Named, part: _Part) -> Topic:
    said = [name.said, *(one for turn in part for one in turn)]
    return Topic(
        title=name.phrase.text,
        turns=tuple(sorted(turn[0].sentence.turn.number for turn in part)),
        sources=tuple(dict.fromkeys(one.sentence.message.message_id for one in said)),
    )
