"""Topics of a day: groups of related turns, each named by the phrase that fits it best."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise
from typing import Final, NamedTuple

from schemas.conversations import Role
from schemas.summaries import FEWEST_TOPICS, MOST_TOPICS, Topic
from streams.summaries.rules.clustering import clusters, products
from streams.summaries.rules.naming import names
from streams.summaries.rules.sentences import CHINESE, Sentence, content, trimmed
from streams.summaries.rules.talk import Spot, Talk, alike
from streams.summaries.rules.turns import Turn
from streams.summaries.rules.word_classes import Phrase
from streams.summaries.rules.words import word_vectors

TEXT_CHARS: Final = 600
"""Maximum number of characters of a turn that are compared."""

REPLIES: Final = 2
"""Maximum number of clauses of the assistant that are read together with the user's clauses of a turn."""

MOST_GROUPS: Final = 12
"""Maximum number of groups of turns that are tried as topics: the groups with the most text."""

_ONE_WORD: Final = re.compile(r"[^\s\u4e00-\u9fff]+|[\u4e00-\u9fff]{2}")
"""A name of one word. If only one turn has the word, the topic says little, and other topics are preferred."""

QUESTION_SHARE: Final = 0.8
REPLY_SHARE: Final = 0.75
"""The share (see `Phrase`) of a name in a question, and of a name that the assistant said."""

OPENING: Final = 0.05
"""Added to the cosine between a name and its topic if the name is in the topic's first turn."""

AGAIN: Final = 0.15
"""Added to that cosine if several turns of the topic have the name."""


class _Talked(NamedTuple):
    """The text of a turn without courtesies, and possible names for its topic."""

    turn: Turn
    text: str
    sources: tuple[str, ...]
    names: list[Phrase]


def topics(talk: Talk) -> tuple[Topic, ...]:
    """Return the three to five topics with the most text, in order of appearance.

    There are fewer topics if fewer turns have content.
    """
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
        cosines = products(of_names, vectors[rows].mean(axis=0)).tolist()
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
    """Yield the turns with content.

    The text of a turn consists of the clauses of the user, and of the first `REPLIES` clauses of the assistant. If
    the user has no message in the turn, it consists of all clauses of the assistant.
    """
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
    """Yield the clauses of the sentences, without small talk."""
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
    """True if a topic's name is one word, and fewer than two turns of the topic contain it."""
    word = title.casefold()
    return _ONE_WORD.fullmatch(title) is not None and sum(word in turn.text.casefold() for turn in group) < 2


def _best(group: Sequence[_Talked], cosines: Mapping[str, float], others: Sequence[str]) -> str:
    """Return the best name for the group that is not `alike` any of the `others`, or "" if there is none.

    The best name is near to the mean of the group's vectors, and has the form of a name.
    """
    best, text = 0.0, ""
    in_turns = Counter(name for turn in group for name in {name.text.casefold() for name in turn.names})
    for turn in group:
        for name in turn.names:
            worth = name.share * (cosines[name.text] + AGAIN * (in_turns[name.text.casefold()] > 1))
            worth += OPENING * (turn is group[0])
            if worth > best and not any(alike(name.text, other) for other in others):
                best, text = worth, name.text
    return text
