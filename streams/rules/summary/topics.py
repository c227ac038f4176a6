"""What was talked about: turns that go together, each group under the clause that tells most of it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise
from typing import Final, NamedTuple

from schemas.messages import Role
from schemas.summaries import MOST_TOPICS, TITLE_CHARS, Topic
from streams.rules.estimator import told
from streams.rules.summary.clustering import clusters
from streams.rules.summary.sentences import CHINESE, Sentence, content, shortened, trimmed
from streams.rules.summary.talk import Spot, Talk, alike
from streams.rules.summary.turns import Turn
from streams.rules.summary.words import word_vectors

TEXT_CHARS: Final = 600
"""So much of a turn is compared."""

REPLIES: Final = 2
"""So many clauses of the assistant's are read with what the user says."""

QUESTION_SHARE: Final = 0.65
REPLY_SHARE: Final = 0.65
CUT_SHARE: Final = 0.9
TAKEN_SHARE: Final = 0.9
FACT_SHARE: Final = 0.6
"""What a title is worth that asks, that the assistant has said, that is cut, or that another section has already."""

TELLING, MOST_TELLING = 0.035, 10.0
"""What each point of the local estimator's, of so many at the most, adds to the cosine of a title with its topic."""

OPENING: Final = 0.05
"""What it adds that the topic began with it."""

WIDE: Final = 30
LENGTH: Final = 0.002
"""What each column beyond `WIDE` takes off it; a Chinese character is two columns wide."""


class _Title(NamedTuple):
    text: str
    share: float


class _Talked(NamedTuple):
    """What is said in a turn, courtesies apart, and how its topic could be called."""

    turn: Turn
    text: str
    sources: tuple[str, ...]
    titles: list[_Title]


def topics(talk: Talk, facts: Container[str] = ()) -> tuple[Topic, ...]:
    """The three to five topics that most is said about, as they came up; fewer where fewer turns say anything.

    A title is none of the `facts`, which another section has, unless nothing else would do.
    """
    talked = list(_talked(talk, facts))
    if not talked:
        return ()
    titles = list(dict.fromkeys(title.text for turn in talked for title in turn.titles))
    vectors, of_titles = word_vectors([turn.text for turn in talked], titles)
    follows = [False, *(_follows(later.turn, turn.turn) for turn, later in pairwise(talked))]
    groups = clusters(vectors, follows)
    groups.sort(key=lambda rows: (-sum(len(talked[row].text) for row in rows), rows))
    found: list[Topic] = []
    for rows in groups:
        group = [talked[row] for row in rows]
        cosines = (of_titles @ vectors[rows].mean(axis=0)).tolist()
        title = _best(group, dict(zip(titles, cosines, strict=True)), [topic.title for topic in found])
        if title:
            turns = tuple(turn.turn.number for turn in group)
            sources = tuple(dict.fromkeys(source for turn in group for source in turn.sources))
            found.append(Topic(title=title, turns=turns, sources=sources))
        if len(found) == MOST_TOPICS:
            break
    return tuple(sorted(found, key=lambda topic: topic.turns))


def _follows(turn: Turn, before: Turn) -> bool:
    return turn.session_id == before.session_id and turn.number == before.number + 1


def _talked(talk: Talk, facts: Container[str]) -> Iterator[_Talked]:
    """The turns in which anything is said: by the user, with the assistant's first words on it, or by it alone."""
    for _, group in groupby(enumerate(talk.sentences), key=lambda placed: placed[1].turn.number):
        sentences = list(group)
        user = list(_telling(talk, (one for one in sentences if one[1].by_user)))
        replies = _telling(talk, (one for one in sentences if not one[1].by_user))
        turn = sentences[0][1].turn
        alone = all(message.role is not Role.USER for message in turn.messages)
        said = user + list(islice(replies, REPLIES)) if user else list(replies) if alone else []
        if said:
            text = " ".join(trimmed(spot.text) for spot in said)[:TEXT_CHARS]
            sources = dict.fromkeys(spot.sentence.message.message_id for spot in said)
            yield _Talked(turn, text, tuple(sources), list(_titles(talk, said, facts)))


def _telling(talk: Talk, sentences: Iterable[tuple[int, Sentence]]) -> Iterator[Spot]:
    """The clauses that hold more than small talk."""
    for place, sentence in sentences:
        for clause, text in enumerate(sentence.opened):
            if not sentence.code and len(text) > 1 and content(text) and not talk.idle(place, clause):
                yield Spot(place, clause, sentence, text)


def _titles(talk: Talk, said: Sequence[Spot], facts: Container[str]) -> Iterator[_Title]:
    """Stretches of clauses that can stand alone: a sentence's first ones, and those that have their own subject."""
    known = {(spot.place, spot.clause) for spot in said}
    leading = {spot.place: spot.clause for spot in reversed(said)}
    for place, clause, sentence, opened in said:
        first = leading[place] == clause
        if sentence.cues.dangling.match(opened) or not (first or sentence.cues.own.match(opened)):
            continue
        share = 1.0 if sentence.by_user else REPLY_SHARE
        if clause >= sentence.told:
            share *= QUESTION_SHARE
        if talk.taken(place, clause):
            share *= TAKEN_SHARE
        last = clause + 1
        while len(text := sentence.span(clause, last)) <= TITLE_CHARS:
            whole = _ends(sentence, last)
            if whole or last == clause + 1 or sentence.cues is CHINESE:
                yield _Title(text, share * (1 if whole else CUT_SHARE) * (FACT_SHARE if text in facts else 1))
            if (place, last) not in known:
                break
            last += 1
        if last == clause + 1 and len(text) > TITLE_CHARS:
            yield _Title(shortened(text, TITLE_CHARS), share * CUT_SHARE)


def _ends(sentence: Sentence, last: int) -> bool:
    """Whether what comes before the clause is complete without it; commas part lists as well."""
    if last == len(sentence.clauses):
        return True
    following = sentence.clauses[last].lstrip()
    if sentence.cues.own.match(following):
        return True
    return bool(sentence.cues.dangling.match(following)) and not following.startswith(("and ", "or "))


def _best(group: Sequence[_Talked], cosines: Mapping[str, float], others: Sequence[str]) -> str:
    """The title that is nearest to the middle of the group and tells something, unlike the others; "" for none."""
    best, text = 0.0, ""
    for turn in group:
        for title in turn.titles:
            wide = len(title.text) + sum(map("\u2e7f".__lt__, title.text))
            bonus = OPENING * (turn is group[0]) - LENGTH * max(0, wide - WIDE)
            if title.share * (cosines[title.text] + TELLING * MOST_TELLING) + bonus <= best:
                continue  # whatever it tells
            worth = title.share * (cosines[title.text] + TELLING * told(title.text).score) + bonus
            telling = len(content(title.text)) > 1 and not any(alike(title.text, other) for other in others)
            if worth > best and telling:
                best, text = worth, title.text
    return text
