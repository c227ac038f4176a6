"""The lines of a day that are worth a note, with the kind of each: runs of clauses of one kind within a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from schemas.phrases import FORCE_PHRASES
from streams.language.estimator import told
from streams.summaries.rules.embedding import Embed, Floats
from streams.summaries.rules.kinds import Kind, probabilities
from streams.summaries.rules.sentences import ITEM_CHARS, Sentence, content, reason_in, shortened, tells

LEAST: Final = {
    Kind.PREFERENCE: 0.7,
    Kind.DECISION: 0.55,
    Kind.REASON: 0.4,
    Kind.TASK: 0.4,
    Kind.PROBLEM: 0.6,
    Kind.SOLUTION: 0.35,
    Kind.INSIGHT: 0.45,
}
"""The probability that a clause of each kind has at least, to begin a line."""

BY_ASSISTANT: Final = {Kind.DECISION: 0.6, Kind.REASON: 0.4, Kind.TASK: 0.6, Kind.SOLUTION: 0.35}
"""The same for what the assistant says, which is never a preference, a problem or an insight."""

NAMED_LEAST: Final = 0.1
"""The probability of a task that words such as "I have to" call one."""

GOES_ON: Final = 0.4
"""The probability that a clause has at least, to belong to a line of its kind that begins before it.

A clause with a subject of its own begins a line if it may, so that each line has one fact.
"""

LASTING_SCORE: Final = 6.0
LASTING: Final = frozenset(
    {"name", "person", "identity", "own-identity", "occupation", "origin", "home", "constraint", "own-relation"}
)
"""A sentence with one of these signals of the local estimator, and at least this score, is an insight, too."""

_RECALLS: Final = ("remember my", "could you remember", "记得", "記得")
"""Phrases that are not removed like other requests, because they can be part of the statement, or no request."""

_REQUESTS: Final = "|".join(sorted(set(FORCE_PHRASES).difference(_RECALLS), key=len, reverse=True))
REMEMBER: Final = re.compile(
    rf"^(?:请|你|要|please\s)*(?:{_REQUESTS}|could you remember(?: that)?|remember(?= my\b))(?:了|一件事)?\W*",
    re.IGNORECASE,
)
"""A request to remember what follows it."""

_FACT: Final = re.compile(r"(?:that|住)\W*$", re.IGNORECASE)
"""The end of a request that a fact follows, not a task: "remember that", 请记住; but not "don't forget"."""

_JOINING: Final = re.compile(r"(?<=[\u3040-\u30ff\u4e00-\u9fff])(?:な?ので|んで|だから|(?:ん(?:だ|です))?けど)$")
"""Japanese words that join a clause to the next one: 退院するので."""


class Line(NamedTuple):
    """A run of clauses: those from index `first` to before `last` of the sentence at index `place` of the day.

    `sure` is the highest probability of its kind.
    """

    kind: Kind
    place: int
    first: int
    last: int
    sure: float
    sentence: Sentence

    @property
    def text(self) -> str:
        """The clauses without opening words, without marks at the edges and words that only join them, shortened."""
        return shortened(_JOINING.sub("", self.sentence.span(self.first, self.last)), ITEM_CHARS)

    @property
    def message_id(self) -> str:
        return self.sentence.message.message_id

    @property
    def at(self) -> tuple[int, int]:
        return self.place, self.first

    @property
    def worth(self) -> float:
        """The worth for the summary, from 0 to 2: how sure the kind is, and how much the text tells of a life."""
        return self.sure + told(self.text).score / 10


def lines(sentences: Sequence[Sentence], embed: Embed | None) -> list[Line]:
    """Return the lines of a day, in their order. Code, and what has no word with a meaning, makes none."""
    found = zip(sentences, probabilities(sentences, embed), strict=True)
    return [
        line
        for place, (sentence, likely) in enumerate(found)
        if not sentence.code
        for line in _runs(place, sentence, likely)
        if tells(line.text)
    ]


def _runs(place: int, sentence: Sentence, likely: Floats) -> Iterator[Line]:
    """Yield the lines of a sentence."""
    line: Line | None = None
    for clause, chances in enumerate(likely):
        kind = _kind(sentence, clause, chances)
        if kind == Kind.NONE and line and chances[line.kind] >= GOES_ON:
            kind = line.kind
        if line and (
            kind != line.kind
            or (chances[kind] >= LEAST[kind] and sentence.cues.own.match(sentence.clauses[clause].lstrip()))
            or len(sentence.span(line.first, clause + 1)) > ITEM_CHARS
        ):
            yield line
            line = None
        if kind != Kind.NONE:
            sure = float(chances[kind])
            if line:
                line = line._replace(last=clause + 1, sure=max(sure, line.sure))
            else:
                line = Line(kind, place, clause, clause + 1, sure, sentence)
    if line:
        yield line


def _kind(sentence: Sentence, clause: int, chances: Floats) -> Kind:
    """Return the most probable kind, or `Kind.NONE`.

    A clause that begins with "because" can only be a reason. What the user asks to remember is an insight.
    """
    kind = Kind(int(chances[1:].argmax()) + 1)
    opened, cues = sentence.opened[clause], sentence.cues
    asked = REMEMBER.match(opened) if sentence.by_user else None
    if asked and content(opened[asked.end() :]) and (kind != Kind.TASK or _FACT.search(asked[0])):
        return Kind.INSIGHT
    because = reason_in(sentence.clauses[clause].lstrip(), cues)
    least = LEAST if sentence.by_user else BY_ASSISTANT
    if (kind == Kind.REASON or not because) and kind in least and chances[kind] >= least[kind]:
        return kind
    if not sentence.by_user:
        return Kind.NONE
    if clause < sentence.told and chances[Kind.TASK] >= NAMED_LEAST and cues.must.search(opened):
        return Kind.TASK
    return Kind.INSIGHT if _lasts(sentence, clause) else Kind.NONE


def _lasts(sentence: Sentence, clause: int) -> bool:
    """True if the local estimator finds a lasting fact of the user's life in a whole sentence."""
    if clause or len(sentence.clauses) > 1 or sentence.asked:
        return False
    found = told(sentence.text)
    return found.score >= LASTING_SCORE and not LASTING.isdisjoint(found.signals)
