"""Finds insights: facts of the user's life, and conclusions, that are worth keeping and in no other section."""

from __future__ import annotations

import re
from typing import Final

from schemas.phrases import FORCE_PHRASES
from schemas.summaries import Insight
from streams.language.estimator import told
from streams.summaries.rules.sentences import ITEM_CHARS, content, shortened
from streams.summaries.rules.talk import Found, Talk

LEAST_WORTH: Final = 7.0
"""The minimum worth of an insight. The worth is the local estimator's score, 0-10, plus the additions below."""

LASTING_WORTH: Final = 1.5
CONCLUSION_WORTH: Final = 7.0
"""`LASTING_WORTH` is added for a lasting fact, `CONCLUSION_WORTH` for a conclusion or a request to remember."""

LASTING: Final = frozenset(
    {
        *("name", "person", "identity", "own-identity", "occupation", "origin", "home", "contact"),
        *("own-relation", "constraint", "habit", "preference"),
    }
)
"""The estimator's signals of facts that will still be true in a year."""

_RECALLS: Final = ("remember my", "could you remember", "记得", "記得")
"""Phrases that are not removed like other requests, because they can be part of the statement, or no request."""

_REQUESTS: Final = "|".join(sorted(set(FORCE_PHRASES).difference(_RECALLS), key=len, reverse=True))
_REMEMBER: Final = re.compile(
    rf"^(?:请|你|要|please\s)*(?:{_REQUESTS}|could you remember(?: that)?|remember(?= my\b))(?:了|一件事)?\W*",
    re.IGNORECASE,
)

_YOURS: Final = re.compile(r"你|您|you\b", re.IGNORECASE)


def insights(talk: Talk) -> tuple[list[Found[Insight]], list[Found[Insight]]]:
    """Return the insights in those sentences of the user that are not part of another item.

    The first list has lasting facts and conclusions. The second list has other informative sentences.
    """
    facts: list[Found[Insight]] = []
    events: list[Found[Insight]] = []
    for place, sentence in enumerate(talk.sentences):
        if not sentence.by_user or sentence.code or talk.taken(place):
            continue
        said = _said(talk, place)
        text = shortened(_REMEMBER.sub("", said), ITEM_CHARS)
        if len(content(text)) < 2 or sentence.cues.unreal.search(text):
            continue
        found = told(text)
        worth = found.score if text == sentence.text else min(found.score, talk.worth(place))
        concludes = text != said or sentence.cues.realises.search(text) is not None
        lasts = not LASTING.isdisjoint(found.signals)
        worth += CONCLUSION_WORTH if concludes else LASTING_WORTH if lasts else 0
        alone = concludes or lasts or not sentence.cues.dangling.match(text)
        if alone and worth >= LEAST_WORTH:
            insight = Insight(text=text, sources=(sentence.message.message_id,))
            (facts if concludes or lasts else events).append(Found(insight, worth, place))
    return facts, events


def _said(talk: Talk, place: int) -> str:
    """Return the statements of a sentence up to the first small talk.

    Return "" if there are no statements, or if they begin with "you".
    """
    sentence = talk.sentences[place]
    first = next((clause for clause in range(sentence.told) if sentence.opened[clause]), sentence.told)
    last = next((clause for clause in range(first, sentence.told) if talk.idle(place, clause)), sentence.told)
    return "" if first == last or _YOURS.match(sentence.opened[first]) else sentence.span(first, last)
