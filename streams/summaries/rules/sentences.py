"""Cuts messages into sentences and clauses. Their words are not changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from schemas.conversations import Role
from schemas.exchanges import Message
from streams.language.estimator import READ_CHARS
from streams.language.scripts import is_chinese
from streams.summaries.rules.cues import Cues, captured
from streams.summaries.rules.turns import Turn
from tables.search.tokens import tokens, weight

CHINESE: Final = Cues.read("cues_zh.txt")
ENGLISH: Final = Cues.read("cues_en.txt")

ITEM_CHARS: Final = 120
"""Maximum number of characters of an item. A longer item is cut after the last clause that fits."""

_CJK: Final = re.compile("[\u4e00-\u9fff]")
_APART: Final = re.compile(r"\[[^\[\]\n]*\]|(?P<fence>```.*?(?:```|\Z))|\n", re.DOTALL)
"""Text that separates sentences: a line break, a client's note in brackets ("[shared image: …]"), a block of code."""

_LISTED: Final = re.compile(r"\s*(?:[-*+•>#]+\s+|\d{1,2}[.)、]\s*(?=\D))+")
_TRACE: Final = re.compile(r"Traceback \(|\s*(?:File \"|at \S+\()")
_WHOLE: Final = re.compile(
    r"《[^《》]{1,60}》|“[^“”]{1,80}”|「[^「」]{1,80}」|『[^『』]{1,80}』|（[^（）]{1,80}）|\([^()]{1,80}\)"
    r'|"[^"]{1,80}"|`[^`]{1,120}`|https?://[^\s\u4e00-\u9fff，。]*[^\s\u4e00-\u9fff，。.,;:!?]'
)
"""Titles, quotations and addresses. A punctuation mark within them ends no sentence or clause."""

_OPENING: Final = re.compile('[《“「『（("`]|://')
_END: Final = re.compile(r"(?:[。！？!?؟；;؛…।]|\.(?=[\s\u4e00-\u9fff.”\"』」）)]|$))+[”\"』」）)~～]*")
_CALLED: Final = re.compile(r"\s*[A-Z][a-z]+[,.!…\s]*")
"""A clause that is only a name, after a courtesy: "Tom" in "Thanks, Tom!"."""

_SHORT: Final = re.compile(r"\b(?:Mrs?|Ms|Dr|Prof|St|vs|e\.g|i\.e|approx|Inc|Ltd|Jr|Sr)$")
_PAUSE: Final = re.compile(r"[，：；]|[,:;](?=[\s\u4e00-\u9fff])|\s*[—–]+|\s-+(?=\s)")
_JOINED: Final = re.compile(
    r"\s(?=(?:but|because|cause|cuz|although|though|which|so(?! (?:much|many|far|long|on)\b)"
    r"|(?:and|or|then) (?!i (?:are|were)\b)(?:i|we|you|he|she|it|they|my|our|his|her|their|the)(?:'\w+)?"
    r"|aber|weil|denn|obwohl|sondern|damit|und (?:ich|wir|er|sie|es|mein\w*|der|die|das)"
    r"|pero|porque|aunque|así que|y (?:yo|me|mi|mis|nos|el|la|los|las))\s)"
    r"|(?<=[\u3040-\u30ff\u4e00-\u9fff])(?:ので|けど|から(?=[\u3040-\u30ff\u4e00-\u9fff]))、?"
    r"|(?<=[\uac00-\ud7a3])(?:는데|니까|지만|어서|아서|라서)\s",
    re.IGNORECASE,
)
"""Where words join two clauses: chats have them without a pause."""

_ASKED: Final = re.compile(r"[?？؟][”\"』」）)~～!！。.\s]*$|(?:吗|你呢|您呢)[~～!！。.\s]*$")
_LINK: Final = re.compile(
    r"\s(?:and|or|but|so|because|since|if|when|while|which|that|who|where|after|before|until|with|without|for|from|in|on"
    r"|at|to|by|about|into|as|than|during|through|based|according|such|like)\b",
    re.IGNORECASE,
)
"""Words before which an English clause may end without a punctuation mark."""

_EDGE: Final = " \t，,、；;：:。.！!…~～—–-"


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """A sentence of a message. White space is reduced to single blanks.

    `clauses` include the marks that end them. `opened` are the clauses without opening words ("Well, by the way, …").
    The first `told` clauses are statements, and the remaining clauses are a question: "I like tea, and you?" has
    both. `cues` are the cues of the main language of the message. `code` marks a line of a traceback or of a code
    block.
    """

    text: str
    clauses: tuple[str, ...]
    opened: tuple[str, ...]
    told: int
    turn: Turn
    message: Message
    cues: Cues
    code: bool = False

    @property
    def asked(self) -> bool:
        return self.told < len(self.clauses)

    @property
    def by_user(self) -> bool:
        return self.message.role is Role.USER

    def span(self, first: int, last: int) -> str:
        """Return the clauses from `first` to before `last` as one text.

        Opening words, and marks at the edges of the text, are removed.
        """
        return trimmed(self.opened[first] + "".join(self.clauses[first + 1 : last]))


def trimmed(text: str) -> str:
    """Return the text without marks and blanks at its edges. Quotation marks and brackets are kept."""
    return text.strip(_EDGE)


def tells(text: str) -> bool:
    """True if the text has a word with a meaning. Here a single Chinese character counts as a word with a meaning."""
    return bool(content(text) or _CJK.search(text))


@lru_cache(maxsize=4096)
def content(text: str) -> frozenset[str]:
    """Return the index terms of a text that have a meaning: no function words, no single Chinese characters."""
    return frozenset(token for token in set(tokens(text)) if weight(token) == 1.0)


def shortened(text: str, chars: int) -> str:
    """Shorten a text to at most `chars` characters. Cut it after a punctuation mark, else after a whole word.

    If it is cut after a word, the result does not end in words such as "of the", which need a next word.
    """
    if len(text) <= chars:
        return text
    marks = [end for end in (*_ends(text), *_pauses(text)) if chars // 3 <= end <= chars + 1]
    if marks and len(head := trimmed(text[: max(marks)])) <= chars:
        return head
    head, blank, _ = text[: chars + 1].rpartition(" ")
    if not blank or len(head) < chars // 3:
        return trimmed(text[:chars])
    links = [link.start() for link in _LINK.finditer(head) if link.start() >= chars // 3]
    words = head[: links.pop()] if links else head
    while links and len(words[links[-1] :].split()) < 3:
        words = words[: links.pop()]
    while (last := words.rpartition(" "))[0] and not content(last[2]):
        words = last[0]
    return trimmed(words)


def parted(text: str, cues: Cues) -> tuple[str, str]:
    """Split a text at "because". Return the statement and its reason, which is "" if the text gives no reason."""
    why = cues.because.search(text)
    if why and (before := trimmed(text[: why.start()])):
        return before, trimmed(captured(why))
    return text, ""


def reason_in(text: str, cues: Cues) -> str:
    """Return the reason of a text that begins with "because"; "" of any other text."""
    why = cues.because.match(text)
    return captured(why) if why else ""


def sentences_of(turns: Iterable[Turn]) -> list[Sentence]:
    """Return all sentences, in the order of turns and messages. Only the beginning of a long message is read."""
    return [sentence for turn in turns for message in turn.messages for sentence in _cut(turn, message)]


def neighbours(sentences: Sequence[Sentence]) -> tuple[list[int | None], list[int | None]]:
    """Return, for each sentence, the index of the last sentence before its message, and of the first one after it.

    A neighbour of another session is none.
    """
    changes = [place for place, (one, next_) in enumerate(pairwise(sentences), 1) if one.message is not next_.message]
    starts = [0, *changes] if sentences else []
    before: list[int | None] = []
    after: list[int | None] = []
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(sentences)
        session = sentences[start].turn.session_id
        earlier = start - 1 if start and sentences[start - 1].turn.session_id == session else None
        later = end if end < len(sentences) and sentences[end].turn.session_id == session else None
        before += [earlier] * (end - start)
        after += [later] * (end - start)
    return before, after


def _cut(turn: Turn, message: Message) -> Iterator[Sentence]:
    text = message.content[:READ_CHARS]
    if len(text) < len(message.content):
        text = text[: max(*_ends(text), text.rfind("\n"), 0)] or text
    cues = CHINESE if is_chinese(text) else ENGLISH
    for line, code in _lines(text):
        if code or _TRACE.match(line):
            bare = " ".join(line.split())
            yield Sentence(bare, (bare,), (bare,), 1, turn, message, cues, code=True)
            continue
        listed = _LISTED.match(line)
        bare = " ".join((line[listed.end() :] if listed else line).split())
        for sentence in filter(None, map(str.strip, _at(_ends(bare), bare))):
            clauses = _at(sorted({*_pauses(sentence), *_joints(sentence)}), sentence)
            opened = _opened(clauses, cues)
            yield Sentence(sentence, clauses, opened, _told(opened, cues), turn, message, cues)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Split the text where a sentence must end. Yield each piece, with True if the piece is code."""
    start = 0
    for parting in _APART.finditer(text):
        if piece := text[start : parting.start()].strip():
            yield piece, False
        if fence := parting["fence"]:
            for line in fence.strip("`").splitlines()[1:]:
                if line.strip():
                    yield line, True
        start = parting.end()
    if piece := text[start:].strip():
        yield piece, False


def _wholes(text: str) -> list[tuple[int, int]]:
    if _OPENING.search(text):
        return [found.span() for found in _WHOLE.finditer(text)]
    return []


def _outside(marks: Iterable[re.Match[str]], text: str) -> Iterator[re.Match[str]]:
    """Yield the punctuation marks that are outside titles, quotations and addresses."""
    wholes = _wholes(text)
    for mark in marks:
        if not any(start <= mark.start() < end for start, end in wholes):
            yield mark


def _ends(text: str) -> list[int]:
    return [
        mark.end()
        for mark in _outside(_END.finditer(text), text)
        if not (text[mark.start()] == "." and _SHORT.search(text, max(0, mark.start() - 8), mark.start()))
    ]


def _pauses(text: str) -> list[int]:
    return [mark.end() for mark in _outside(_PAUSE.finditer(text), text)]


def _joints(text: str) -> list[int]:
    return [mark.end() for mark in _outside(_JOINED.finditer(text), text)]


def _at(ends: Sequence[int], text: str) -> tuple[str, ...]:
    """Cut the text at the indexes `ends`. A piece without a word is joined to the piece before it."""
    pieces: list[str] = []
    start = 0
    for end in (*ends, len(text)):
        piece = text[start:end]
        if any(map(str.isalnum, piece)) or not pieces:
            pieces.append(piece)
        else:
            pieces[-1] += piece
        start = end
    return tuple(piece for piece in pieces if piece)


def _opened(clauses: tuple[str, ...], cues: Cues) -> tuple[str, ...]:
    opened: list[str] = []
    for clause in clauses:
        called = cues is ENGLISH and opened and not opened[-1] and _CALLED.fullmatch(clause)
        opened.append("" if called else cues.openers.sub("", clause, count=1))
    return tuple(opened)


def _told(opened: tuple[str, ...], cues: Cues) -> int:
    asks = next((place for place, clause in enumerate(opened) if cues.asks.match(clause)), len(opened))
    return min(asks, len(opened) - 1) if _ASKED.search(opened[-1]) else asks
