"""Dialogues in which the words of preferences, decisions, tasks, problems and insights are marked.

A file has a message a line, `u: ` for the user and `a: ` for the other one; an empty line ends a dialogue, and `# `
begins its theme. A mark is `[x words]`; its letter says what the words are (`LETTERS`). `[r …]` and `[w …]` may be
within another mark.

>>> message_of("u: I'll [t ring the vet [w on Monday]]")
Marked(by_user=True, text="I'll ring the vet on Monday", spans=[('w', 18, 27), ('t', 5, 27)])
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from schemas.conversations import ChatMessage
from schemas.settings import MemorySettings
from streams.intake.rules.exchanges import Limits
from streams.summaries.rules.kinds import Kind
from streams.summaries.rules.sentences import Sentence, sentences_of
from streams.summaries.rules.turns import turns_of

LETTERS: Final = {
    "p": Kind.PREFERENCE,
    "d": Kind.DECISION,
    "r": Kind.REASON,
    "t": Kind.TASK,
    "x": Kind.PROBLEM,
    "s": Kind.SOLUTION,
    "i": Kind.INSIGHT,
    "w": None,
}
"""The letters of marks, with the kinds of clauses. `w` is a date or time, and tells nothing about a clause."""

_BRACKET: Final = re.compile(rf"(\[[{''.join(LETTERS)}] |\])")

SHARE, LONG = 0.4, 8
"""A clause has a mark's kind if the mark has this share of its letters, or so many of them."""


class Marked(NamedTuple):
    """A message without its marks, which are (letter, start, end)."""

    by_user: bool
    text: str
    spans: list[tuple[str, int, int]]


class Labelled(NamedTuple):
    """The sentences of a dialogue, and the kind of each of their clauses, in their order."""

    name: str
    sentences: list[Sentence]
    kinds: list[int]


def message_of(line: str) -> Marked:
    """Read a line of a file. Raises `ValueError` if it is no message, or if its brackets are not in pairs."""
    if line[:3] not in ("u: ", "a: "):
        raise ValueError(f"neither a user's message nor the other one's: {line!r}")
    text = ""
    spans, opened = [], []
    for piece in _BRACKET.split(line[3:]):
        if _BRACKET.fullmatch(piece) and piece != "]":
            opened.append((piece[1], len(text)))
        elif piece == "]" and opened:
            spans.append((*opened.pop(), len(text)))
        else:
            text += piece
    if opened:
        raise ValueError(f"a bracket is not closed: {line!r}")
    return Marked(line[0] == "u", text, spans)


def dialogues(path: Path) -> Iterator[list[Marked]]:
    """The dialogues of a file."""
    said: list[Marked] = []
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if line.strip() and not line.startswith("#"):
            said.append(message_of(line))
        elif said and not line.strip():
            yield said
            said = []


def labelled(path: Path) -> Iterator[Labelled]:
    """The dialogues of a file, cut into sentences and clauses, as the rules cut them."""
    for number, said in enumerate(dialogues(path)):
        yield _labelled(f"{path.stem}-{number}", said)


def alone(path: Path) -> Iterator[Labelled]:
    """Each of the user's messages in a file of longer dialogues, as if nothing else had been said.

    The name is that of its dialogue.
    """
    for number, said in enumerate(dialogues(path)):
        if len(said) > 1:
            for message in said:
                if message.by_user:
                    yield _labelled(f"{path.stem}-{number}", [message])


def _labelled(name: str, said: Sequence[Marked]) -> Labelled:
    marks = {f"{name}-{place}": message for place, message in enumerate(said)}
    messages = [_sent(name, message_id, one) for message_id, one in marks.items()]
    sentences = sentences_of(turns_of(messages, Limits.of(MemorySettings())))
    read = dict.fromkeys(marks, 0)
    kinds = []
    for sentence in sentences:
        message_id = sentence.message.message_id
        for clause in sentence.clauses:
            kind, read[message_id] = _kind(marks[message_id], clause, read[message_id])
            kinds.append(kind)
    return Labelled(name, sentences, kinds)


def _sent(name: str, message_id: str, message: Marked) -> ChatMessage:
    minute = int(message_id.rpartition("-")[2])
    return ChatMessage.model_validate(
        {
            "user_id": name,
            "session_id": name,
            "message_id": message_id,
            "timestamp": f"2025-06-02T{9 + minute // 60:02}:{minute % 60:02}:00Z",
            "role": "user" if message.by_user else "assistant",
            "content": message.text,
        }
    )


def _kind(message: Marked, clause: str, start: int) -> tuple[int, int]:
    """The kind of a clause that is said from index `start` on, and the index where it ends."""
    letters = []
    for letter in clause:
        if not letter.isspace() and (place := message.text.find(letter, start)) >= 0:
            letters.append(place)
            start = place + 1
    best, most = Kind.NONE, 0
    for letter, begin, end in message.spans:
        kind = LETTERS[letter]
        within = sum(begin <= place < end for place in letters)
        if kind is not None and within > most and (within >= SHARE * len(letters) or within >= LONG):
            best, most = kind, within
    return best, start
