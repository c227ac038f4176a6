"""The phrases of a day that may be titles of topics, and their features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log, log1p
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from schemas.conversations import Role
from streams.language.scripts import script_of
from streams.summaries.rules.embedding import Floats
from streams.summaries.rules.kinds import Kind
from streams.summaries.rules.noun_phrases import NounPhrase, read_clause
from streams.summaries.rules.sentences import Sentence
from streams.summaries.rules.tagging import Tongue, tongue_of
from streams.summaries.rules.talk import Talk

BUCKETS: Final = 4096
"""The number of coefficients that the words of phrases, and around them, share."""

SIZES: Final = 3
"""Phrases of more words have the same features as those of this many and one."""

WORD_SCALE: Final = 0.5
"""The factor of the features of words. It says how freely the fit may use them."""

SIMILAR: Final = 0.3
"""The similarity of a message to a phrase from which on it is about it."""


class Clause(NamedTuple):
    """A clause that is no small talk: where it stands in the day, and what it names.

    `place` is the index of its sentence, `clause` its own index in the sentence, `message` that of its message.
    `counts` is false for a clause of the assistant in a turn in which the user speaks.
    """

    sentence: Sentence
    place: int
    clause: int
    message: int
    tongue: Tongue
    counts: bool
    phrases: tuple[NounPhrase, ...]
    keys: frozenset[str]


class Candidate(NamedTuple):
    """A phrase, the clauses that say it, and the indexes of messages: those that say it, and any of its words."""

    phrase: NounPhrase
    said: list[Clause]
    messages: frozenset[int]
    near: frozenset[int]


class Candidates(NamedTuple):
    """The candidates of a day with their features, float32[candidates, features], and the indexes of their words.

    `vectors` are their embeddings, float32[candidates, 512], and `likeness` is how similar the messages are to them,
    float32[candidates, messages]. Both have no columns without an encoder.
    """

    phrases: list[Candidate]
    features: Floats
    words: list[NDArray[np.int64]]
    vectors: Floats
    likeness: Floats


def clauses(talk: Talk) -> list[Clause]:
    """Return the clauses of both speakers, without small talk and code, of turns in which a clause counts."""
    messages = {id(one.message): one.message.content for one in talk.sentences}
    numbers = {message: number for number, message in enumerate(messages)}
    latin = tongue_of(" ".join(text for text in messages.values() if not script_of(text)))
    found = []
    for place, sentence in enumerate(talk.sentences):
        tongue = script_of(sentence.message.content) or latin
        counts = sentence.by_user or all(message.role is not Role.USER for message in sentence.turn.messages)
        for clause, text in enumerate(sentence.opened):
            if not sentence.code and len(text) > 1 and not talk.idle(place, clause):
                number = numbers[id(sentence.message)]
                found.append(Clause(sentence, place, clause, number, tongue, counts, *read_clause(text, tongue)))
    counted = {one.sentence.turn.number for one in found if one.counts}
    return [one for one in found if one.sentence.turn.number in counted]


def candidates(talk: Talk, said: Sequence[Clause]) -> Candidates:
    """Return the phrases of the clauses, each of them once, without embeddings."""
    messages: dict[str, set[int]] = {}
    counted: dict[str, set[int]] = {}
    named: dict[str, Candidate] = {}
    for one in said:
        for key in one.keys:
            (counted if one.counts else messages).setdefault(key, set()).add(one.message)
        for phrase in one.phrases:
            named.setdefault(phrase.text.casefold(), Candidate(phrase, [], frozenset(), frozenset())).said.append(one)
    if not named:
        return Candidates([], none := np.empty((0, 0), np.float32), [], none, none)
    found = []
    for each in named.values():
        exact = frozenset(one.message for one in each.said)
        keys = each.phrase.keys
        near = exact.union(*(sets.get(key, ()) for key in keys for sets in (messages, counted)))
        found.append(each._replace(messages=exact, near=near))
    rows = [_features(talk, said, each, counted, messages) for each in found]
    none = np.empty((len(found), 0), np.float32)
    features = np.hstack([np.array(rows, np.float32), _longer(found)])
    return Candidates(found, features, [_words(each) for each in found], none, none)


def _features(
    talk: Talk, said: Sequence[Clause], one: Candidate, counted: dict[str, set[int]], others: dict[str, set[int]]
) -> list[float]:
    """Where a phrase stands, how often its words recur, and what it looks like."""
    first, phrase = one.said[0], one.phrase
    by_user = [len(counted.get(key, ())) for key in phrase.keys]
    by_assistant = [len(others.get(key, ())) for key in phrase.keys]
    messages = said[-1].message + 1
    kinds = [0.0] * len(Kind)
    for clause in one.said:
        for line in talk.lines_at.get(clause.place, ()):
            if line.first <= clause.clause < line.last:
                kinds[line.kind] = max(kinds[line.kind], line.sure)
    return [
        *(
            value
            for counts in (by_user, by_assistant)
            for value in (*_logs(counts), sum(map(log1p, counts)) / len(counts))
        ),
        min(by_user) > 0 < min(by_assistant),
        log1p(len(one.messages)),
        first.counts,
        any(clause.counts for clause in one.said),
        (max(one.near) - min(one.near)) / messages,
        min(one.messages) / messages,
        min(one.near) / messages,
        first.sentence.turn.number == said[0].sentence.turn.number,
        any(_asked(clause) for clause in one.said),
        any(_asked(clause) and clause.counts for clause in one.said),
        any(not clause.place or _opens(talk, clause) for clause in one.said),
        any(message + 1 in one.near for message in one.messages),
        first.counts and min(one.near) == min(one.messages),
        *kinds[1:],
        *(phrase.size == size for size in range(1, SIZES + 1)),
        len(phrase.text) / 20,
        any(map(str.isupper, phrase.text)),
        phrase.text[0].isupper() and bool(phrase.around[0]),
        any(map(str.isdigit, phrase.text)),
        len(phrase.text) / len(first.sentence.opened[first.clause]),
        log(messages),
    ]


def _logs(counts: Sequence[int]) -> tuple[float, float]:
    return log1p(min(counts)), log1p(max(counts))


def _asked(one: Clause) -> bool:
    return one.clause >= one.sentence.told


def _opens(talk: Talk, one: Clause) -> bool:
    return talk.sentences[one.place - 1].message is not one.sentence.message


def _longer(found: Sequence[Candidate]) -> Floats:
    """How many phrases have all words of each one and more, and whether one of these is said again."""
    having: dict[str, set[int]] = {}
    for place, one in enumerate(found):
        for key in one.phrase.keys:
            having.setdefault(key, set()).add(place)
    rows = []
    for one in found:
        keys = one.phrase.keys
        longer = [found[place] for place in set.intersection(*(having[key] for key in keys))]
        longer = [other for other in longer if len(other.phrase.keys) > len(keys)]
        rows.append((log1p(len(longer)), any(len(other.messages) > 1 for other in longer)))
    return np.array(rows, np.float32)


def embedded(talk: Talk, found: Candidates, places: Sequence[int]) -> Candidates:
    """Return the candidates at these indexes, with their embeddings, and with features of them."""
    assert talk.embed
    phrases = [found.phrases[place] for place in places]
    vectors = talk.embed([one.phrase.text for one in phrases])
    messages: dict[int, Any] = {}
    users = set()
    for sentence, vector in zip(talk.sentences, talk.embed([one.text for one in talk.sentences]), strict=True):
        messages[id(sentence.message)] = messages.get(id(sentence.message), 0) + vector
        if sentence.by_user:
            users.add(id(sentence.message))
    means = np.array([vector / np.linalg.norm(vector) for vector in messages.values()], np.float32)
    by_user = means[[message in users for message in messages]] if users else means
    likeness = vectors @ means.T
    day, mine = (vectors @ (mean.mean(axis=0) / np.linalg.norm(mean.mean(axis=0))) for mean in (means, by_user))
    rows = []
    for one, row in zip(phrases, likeness, strict=True):
        first = min(one.messages)
        others = [value for message, value in enumerate(row) if message not in one.messages]
        before, after = row[max(0, first - 3) : first], row[first + 1 : first + 4]
        near = [*before[-2:], *after]
        later = _mean(after)
        rows.append(
            (
                row[first],
                np.sort(row)[-3:].mean(),
                max(others, default=0.0),
                _mean(near),
                later,
                later - _mean(before),
                np.log1p((row > SIMILAR).sum()),
            )
        )
    similar = np.hstack([day[:, None], mine[:, None], np.array(rows, np.float32)])
    words = [found.words[place] for place in places]
    return Candidates(phrases, np.hstack([found.features[places], similar]), words, vectors, likeness)


def _mean(values: Sequence[float] | Floats) -> float:
    return float(np.mean(values)) if len(values) else 0.0


def _words(one: Candidate) -> NDArray[np.int64]:
    """The indexes of the words at a phrase's edges, those around it, and their classes."""
    named = {crc32(name.encode("utf-8", "surrogatepass")) % BUCKETS for name in _named(one)}
    return np.array(sorted(named), np.int64)


def _named(one: Candidate) -> Iterator[str]:
    phrase, tongue = one.phrase, one.said[0].tongue
    (first, last), (before, after) = (tuple(map(str.casefold, words)) for words in (phrase.words, phrase.around))
    yield tongue
    yield f"{tongue} size {min(phrase.size, SIZES + 1)}"
    yield f"{tongue} letters {phrase.letters}"
    yield f"{tongue} ends {phrase.letters[-1]}"
    for name, word in (("^", first), ("$", last), ("<", before), (">", after)):
        yield f"{tongue}{name}{word}"
    yield from (f"{tongue}$-{last[-count:]}" for count in (1, 2, 3))
    yield from (f"{tongue}^{count}{first[:count]}" for count in (1, 2))
    yield f"{tongue}^-{first[-2:]}"
    yield f"{tongue}<-{before[-2:]}"
    yield f"{tongue}>{after[:2]}+"


def together(found: Candidates, chosen: Sequence[int]) -> Floats:
    """Return what each candidate has in common with those that are chosen, float32[candidates, 8]."""
    rows = np.zeros((len(found.phrases), 8), np.float32)
    rows[:, 0], rows[:, 1] = not chosen, len(chosen) / 5
    if not chosen:
        return rows
    covered = frozenset[int]().union(*(found.phrases[place].messages for place in chosen))
    for row, one in zip(rows, found.phrases, strict=True):
        row[3] = max(shared(one, found.phrases[place]) for place in chosen)
        row[4] = len(one.near & covered) / len(one.near)
        apart = min(abs(min(one.messages) - min(found.phrases[place].messages)) for place in chosen)
        row[5], row[6] = min(apart, 4) / 4, not apart
    if found.vectors.size:
        rows[:, 2] = (found.vectors @ found.vectors[chosen].T).max(axis=1)
        centred = found.likeness - found.likeness.mean(axis=1, keepdims=True)
        centred /= np.linalg.norm(centred, axis=1, keepdims=True) + 1e-6
        rows[:, 7] = (centred @ centred[chosen].T).max(axis=1)
    return rows


def shared(one: Candidate, other: Candidate) -> float:
    """Return the share of words of the shorter phrase that the other one has."""
    return len(set(one.phrase.keys) & set(other.phrase.keys)) / min(len(one.phrase.keys), len(other.phrase.keys))
