"""Finds statements of one value in a text, such as a home, a deadline or a version.

With them, a newer statement about the same is recognized.

Rules are narrow: a wrong statement could put an outdated memory's label on one that holds. Raise `RULES` in
`tokens.py` if a rule changes, because statements are stored with each memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tables.search import chinese_statements, english_statements
from tables.search.found_statement import Found
from tables.search.tokens import tokens, weight

#: The maximum number of statements of a text, and of its characters that are read.
MOST, READ_CHARS = 4, 4_000
#: A value is told apart by this many terms. Longer sentences are not read.
_VALUE_TERMS, _SENTENCE_CHARS = 4, 300
#: How many bits of a statement's word tell its value, and these bits.
VALUE_WIDTH: Final = 24
VALUE_BITS: Final = (1 << VALUE_WIDTH) - 1
_SENTENCE: Final = re.compile(r"[^.!?。！？；;\n]*(?:\.(?=\S)[^.!?。！？；;\n]*)*[.!?。！？；;\n]?")
#: The name of a speaker at the beginning of a message.
_SPEAKER: Final = re.compile(r"((?:[A-Z][\w.'-]*|[\u4e00-\u9fff]{1,4})(?: [A-Z][\w.'-]*){0,2})[:：]\s+")
_LANGUAGES: Final = (english_statements, chinese_statements)
#: Words before a colon that name no speaker.
_LEADS: Final = ("update", "correction", "note", "reminder", "remember", "new info", "quick update", "更正", "更新")


class Statement(NamedTuple):
    """A statement: the terms of what it speaks of, and those of the value."""

    key: frozenset[str]
    value: tuple[str, ...]

    @property
    def word(self) -> int:
        """The statement as a word of 64 bits: 40 of a hash of the key, and 24 of one of the value."""
        return _hash("\n".join(sorted(self.key)), 64) & ~VALUE_BITS | _hash("\n".join(self.value), VALUE_WIDTH)


def statements(text: str) -> list[Statement]:
    """Return the statements of a text, at most `MOST`. Questions state nothing.

    Where speakers are not named, only the first line tells of the speaker: an assistant's words follow the user's.

    >>> [(sorted(one.key), one.value) for one in statements("We moved the deadline to 3 April.")]
    [(['deadlin'], ('3', 'april'))]
    """
    text = text[:READ_CHARS]
    languages = [one for one in _LANGUAGES if one.may_state(text)]
    found: dict[frozenset[str], Statement] = {}
    for number, line in enumerate(text.splitlines() if languages else ()):
        named = _SPEAKER.match(line)
        speaker = tokens(named[1]) if named and not named[1].lower().startswith(_LEADS) else []
        for sentence in _sentences(line[named.end() :] if speaker and named else line):
            for language in languages:
                for one in language.stated(sentence):
                    if one.own and number and not speaker:
                        continue
                    statement = _statement(one, speaker)
                    if statement is not None:
                        found.setdefault(statement.key, statement)
    return list(found.values())[:MOST]


def _sentences(line: str) -> Iterator[str]:
    for piece in _SENTENCE.findall(line):
        bare = " ".join(piece.split())
        if bare and len(bare) <= _SENTENCE_CHARS and bare[-1] not in "?？":
            yield bare.rstrip(".!。！；; ")


def _statement(found: Found, speaker: Sequence[str]) -> Statement | None:
    about = [one for one in tokens(found.about) if weight(one) == 1]
    value = tuple(one for one in tokens(found.value) if weight(one) == 1)[:_VALUE_TERMS]
    if not about or not value:
        return None
    whose = [f"@{one}" for one in speaker] if found.own else []
    return Statement(frozenset([*about, *whose]), value)


def _hash(text: str, bits: int) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") & ((1 << bits) - 1)
