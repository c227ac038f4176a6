"""What was talked about: turns that go together, each group under the phrase that names most of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise
from typing import Final, NamedTuple

from schemas.conversations import Role
from schemas.summaries import FEWEST_TOPICS, MOST_TOPICS, Topic
from streams.summaries.rules.clustering import clusters
from streams.summaries.rules.naming import names
from streams.summaries.rules.sentences import CHINESE, Sentence, content, trimmed
from streams.summaries.rules.talk import Spot, Talk, alike
from streams.summaries.rules.turns import Turn
from streams.summaries.rules.word_classes import Phrase
from streams.summaries.rules.words import word_vectors

TEXT_CHARS: Final = 600
"""So much of a turn is compared."""

REPLIES: Final = 2
"""So many clauses of the assistant's are read with what the user says."""

MOST_GROUPS: Final = 12
"""So many groups of turns are looked at for a name, those that most is said in."""

_ONE_WORD: Final = re.compile(r"[^\s\u4e00-\u9fff]+|[\u4e00-\u9fff]{2}")
"""A topic that is called so by one turn only says little, and goes where there are three others."""

QUESTION_SHARE: Final = 0.8
REPLY_SHARE: Final = 0.75
"""What a name is worth that stands in a question, or that the assistant has said."""

OPENING: Final = 0.05
"""What it adds to the cosine of a name with its topic that the topic began with it."""

AGAIN: Final = 0.15
"""What it adds that another turn of the topic names it as well."""


class _Talked(NamedTuple):
    """What is said in a turn, courtesies apart, and how its topic could be called."""

    turn: Turn
    text: str
    sources: tuple[str, ...]
    names: list[Phrase]


def topics(talk: Talk) -> tuple[Topic, ...]:
    """The three to five topics that most is said about, as they came up; fewer where fewer turns say anything."""
    talked = list(_talked(talk))
    if not talked:
        return ()
    names = list(dict.fromkeys(name.text for turn in talked for name in turn.names))
    vectors, of_names = word_vectors([turn.text for turn in talked], names)
    follows = [False, *(_follows(later.turn, turn.turn) for turn, later in pairwise(talked))]
    groups = clusters(vectors, follows)
    groups.sort(key=lambda rows: (-sum(len(talked[row].text) for row in rows), rows))
    found: list[Topic] = []
    lone: list[Topic] = []
    for rows in groups[:MOST_GROUPS]:
        group = [talked[row] for row in rows]
        cosines = (of_names @ vectors[rows].mean(axis=0)).tolist()
        title = _best(group, dict(zip(names, cosines, strict=True)), [topic.title for topic in (*found, *lone)])
        if title:
            turns = tuple(turn.turn.number for turn in group)
            sources = tuple(dict.fromkeys(source for turn in group for source in turn.sources))
            topic = Topic(title=title, turns=turns, sources=sources)
            (lone if _says_little(group, title) else found).append(topic)
        if len(found) == MOST_TOPICS:
            break
    found += lone[: max(0, FEWEST_TOPICS - len(found))]
    return tuple(sorted(found, key=lambda topic: topic.turns))


def _follows(turn: Turn, before: Turn) -> bool:
    return turn.session_id == before.session_id and turn.number == before.number + 1


def _talked(talk: Talk) -> Iterator[_Talked]:
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
            yield _Talked(turn, text, tuple(sources), list(_names(said)))


def _telling(talk: Talk, sentences: Iterable[tuple[int, Sentence]]) -> Iterator[Spot]:
    """The clauses that hold more than small talk."""
    for place, sentence in sentences:
        for clause, text in enumerate(sentence.opened):
            if not sentence.code and len(text) > 1 and content(text) and not talk.idle(place, clause):
                yield Spot(place, clause, sentence, text)


def _names(said: Iterable[Spot]) -> Iterator[Phrase]:
    for spot in said:
        sentence = spot.sentence
        share = 1.0 if sentence.by_user else REPLY_SHARE
        if spot.clause >= sentence.told:
            share *= QUESTION_SHARE
        for name in names(spot.text, chinese=sentence.cues is CHINESE, opening=not spot.clause):
            yield Phrase(name.text, share * name.share)


def _says_little(group: Sequence[_Talked], title: str) -> bool:
    """Whether a topic is called by one word that only one of its turns has."""
    word = title.casefold()
    return _ONE_WORD.fullmatch(title) is not None and sum(word in turn.text.casefold() for turn in group) < 2


def _best(group: Sequence[_Talked], cosines: Mapping[str, float], others: Sequence[str]) -> str:
    """The name that is nearest to the middle of the group, unlike the others; "" for none."""
    best, text = 0.0, ""
    in_turns = Counter(name for turn in group for name in {name.text.casefold() for name in turn.names})
    for turn in group:
        for name in turn.names:
            worth = name.share * (cosines[name.text] + AGAIN * (in_turns[name.text.casefold()] > 1))
            worth += OPENING * (turn is group[0])
            if worth > best and not any(alike(name.text, other) for other in others):
                best, text = worth, name.text
    return text
