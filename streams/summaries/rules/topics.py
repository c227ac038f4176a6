"""Topics of a day: the phrases that a linear model finds worth a title, each with the turns that are about it.

The model says how probable it is that a phrase names a topic that the chosen phrases do not name yet. It was fitted
to our own invented dialogues by `benchmarks/topic_training.py`, which writes `topics.npz`: with embeddings and
without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from schemas.summaries import Topic
from streams.summaries.rules.candidates import (
    WORD_SCALE,
    Candidate,
    Candidates,
    Clause,
    candidates,
    clauses,
    embedded,
    shared,
    together,
)
from streams.summaries.rules.embedding import Floats
from streams.summaries.rules.tagging import NAME
from streams.summaries.rules.talk import Talk, alike

FILE: Final = Path(__file__).with_name("topics.npz")

LEAST: Final = (0.01, 0.12, 0.12, 0.3, 0.3)
"""The probability that the first, second, … topic has at least. Nearly every day that names anything has one."""

MOST_EMBEDDED: Final = 20
"""Maximum number of candidates of a day that are embedded: each takes 0.2 ms."""

TAGGED: Final = frozenset({"en", "zh", "ja"})
"""The languages of which a library knows the classes of words, so that long phrases are sound."""

MOST_WORDS: Final = 3
"""Maximum number of words of a title that replaces a shorter one."""

ABOUT: Final = 0.3
"""A turn without a word of a topic goes on with the topic of the turn before if it is so similar to its title."""


class Weights(NamedTuple):
    """The coefficients: of features, of words, of embeddings, of what is together with the chosen ones, the bias."""

    features: Floats
    words: Floats
    vectors: Floats
    together: Floats
    bias: Floats

    def alone(self, found: Candidates) -> Floats:
        """Return the log-odds of the candidates, without what is together with chosen ones."""
        words = np.array([self.words[row].sum() for row in found.words], np.float32) * WORD_SCALE
        odds: Floats = found.features @ self.features + found.vectors @ self.vectors + words + self.bias
        return odds


def topics(talk: Talk) -> tuple[Topic, ...]:
    """Return at most five topics, in order of appearance. Small talk and code name nothing.

    Words of the assistant only name a topic in turns in which the user says something, or if the assistant speaks
    alone.
    """
    said = clauses(talk)
    found = candidates(talk, said)
    if not found.phrases:
        return ()
    phrases = found.phrases
    if talk.embed:
        found = embedded(talk, found, likely(loaded("alone"), found))
    places = picked(loaded("embedded" if talk.embed else "alone"), found)
    chosen = [_whole(found.phrases[place], phrases) for place in places]
    likeness = found.likeness[places] if talk.embed else None
    turns = [list(group) for _, group in groupby(said, key=lambda one: one.sentence.turn.number)]
    about = _about(turns, chosen, likeness)
    parts = [[turn for turn, at in zip(turns, about, strict=True) if at == place] for place in range(len(chosen))]
    return tuple(sorted(map(_topic, chosen, parts), key=lambda topic: topic.turns))


def likely(alone: Weights, found: Candidates) -> list[int]:
    """Return the indexes of the candidates that are embedded, because of their other features."""
    return sorted(np.argsort(-alone.alone(found), kind="stable")[:MOST_EMBEDDED].tolist())


def picked(weights: Weights, found: Candidates, least: Sequence[float] = LEAST) -> list[int]:
    """Choose the most probable candidate, one after the other, as long as it is probable enough. Return indexes."""
    alone = weights.alone(found)
    chosen: list[int] = []
    free = list(range(len(found.phrases)))
    for needed in least:
        odds = alone + together(found, chosen) @ weights.together
        best = max(free, key=odds.__getitem__, default=None)
        if best is None or 1 / (1 + np.exp(-odds[best])) < needed:
            break
        chosen.append(best)
        free = [place for place in free if not same(found.phrases[place], found.phrases[best])]
    return chosen


def same(one: Candidate, other: Candidate) -> bool:
    """True if one phrase has all words of the other, or if both are only said in one and the same turn."""
    turns = {clause.sentence.turn.number for phrase in (one, other) for clause in phrase.said}
    return len(turns) == 1 or shared(one, other) == 1 or alike(one.phrase.text, other.phrase.text)


def _whole(one: Candidate, found: Sequence[Candidate]) -> Candidate:
    """Return the longest phrase that has a phrase within it wherever it is said: "maid of honour" for "maid".

    For a phrase with a name that is said more often, return the name: "Leeds" for "train to Leeds".
    """
    if one.said[0].tongue not in TAGGED:
        return one
    names = [
        other
        for other in found
        if set(other.phrase.letters) == {NAME}
        and set(other.phrase.keys) < set(one.phrase.keys)
        and other.messages > one.messages
    ]
    if names:
        return max(names, key=lambda other: len(other.messages))
    text, said = one.phrase.text.casefold(), {id(clause) for clause in one.said}
    longer = (
        other
        for other in found
        if text in other.phrase.text.casefold()
        and other.phrase.size <= MOST_WORDS
        and {id(clause) for clause in other.said} == said
    )
    return max(longer, key=lambda other: len(other.phrase.text), default=one)


def _about(
    turns: Sequence[Sequence[Clause]], chosen: Sequence[Candidate], likeness: Floats | None
) -> list[int | None]:
    """Return the topic of each turn, None for none.

    It is the topic whose words the turn has. A turn without words of a topic goes on with the one before, if it names
    nothing or is similar.
    """
    about: list[int | None] = []
    for number, turn in enumerate(turns):
        keys = frozenset[str]().union(*(one.keys for one in turn))
        shares = [(_share(turn, keys, one), -place) for place, one in enumerate(chosen)]
        share, place = max(shares, default=(0.0, 0))
        before = about[-1] if about and _session(turn) == _session(turns[number - 1]) else None
        if share > 0:
            about.append(-place)
        elif before is not None and (
            not any(one.phrases for one in turn if one.counts)
            or (likeness is not None and max(likeness[before, one.message] for one in turn) >= ABOUT)
        ):
            about.append(before)
        else:
            about.append(None)
    return about


def _share(turn: Sequence[Clause], keys: frozenset[str], one: Candidate) -> float:
    """Return the share of a title's words that a turn has, and one more if the turn is the first with the title."""
    return len(keys.intersection(one.phrase.keys)) / len(one.phrase.keys) + any(
        one.said[0] is clause for clause in turn
    )


def _session(turn: Sequence[Clause]) -> str:
    return turn[0].sentence.turn.session_id


def _topic(one: Candidate, turns: Iterable[Sequence[Clause]]) -> Topic:
    said = [one.said[0], *(clause for turn in turns for clause in turn)]
    return Topic(
        title=one.phrase.text,
        turns=tuple(sorted({clause.sentence.turn.number for clause in said})),
        sources=tuple(dict.fromkeys(clause.sentence.message.message_id for clause in said)),
    )


@lru_cache(maxsize=2)
def loaded(name: str) -> Weights:
    """Read the weights `embedded` or `alone` from `topics.npz`."""
    with np.load(FILE) as file:
        return Weights(*(file[f"{name}_{part}"].astype(np.float32) for part in Weights._fields))
