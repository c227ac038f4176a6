"""What the user says in a memory that is of the user's profile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from schemas.memories import Memory
from schemas.sources import SOURCES, any_covered, sources_in, speakers_in
from streams.language.borrowed import opens_text, own
from streams.language.personal import READ_CHARS, facts, sentences
from streams.language.personal_fact import Part

#: The maximum number of texts whose readings are kept: some 20 MB.
MOST_READINGS: Final = 50_000
#: The maximum number of characters of a memory that are read.
MEMORY_CHARS: Final = 4_000


def own_words(memory: Memory) -> list[str]:
    """Return the lines of a memory that are the user's.

    A conversation of several users has none. The text of an exchange has the user's messages first. Where speakers
    have no names, nothing tells where the assistant's words begin, so only the first line counts as the user's.
    """
    lines = memory.text.splitlines()
    sources = sources_in(memory.meta, memory.kind)
    speakers = speakers_in(memory.meta)
    if memory.kind != "exchange":
        return lines
    if sum(one.startswith("user:") for one in sources) > 1:
        return []
    if not speakers and not any_covered(["assistant"], sources):
        return lines
    if not speakers:
        return lines[:1] if "user" in sources else []
    mine, unnamed = "user" in sources, "assistant" in sources
    own = []
    for line in lines:
        name, colon, words = line.partition(": ")
        named = bool(colon) and name in speakers
        if named:
            mine = f"user:{name}" in sources
        if mine:
            own.append(words if named else line)
        mine = mine and not unnamed
    return own


def sentences_of(memory: Memory) -> Iterator[str]:
    """Yield the sentences of the user's words in a memory, of the first `MEMORY_CHARS` characters.

    They end where a text to work on begins.
    """
    left = MEMORY_CHARS
    for line in own_words(memory):
        if left <= 0:
            return
        for sentence in own(sentences(line, min(left, READ_CHARS))):
            if opens_text(sentence):
                return
            yield sentence
        left -= len(line)


class Reading(NamedTuple):
    """A fact that a memory tells: the place of its sentence in the memory, and the hash of its key and of each word.

    It has no words of the memory.
    """

    place: int
    part: Part
    key: int
    words: frozenset[int]
    rank: int
    dated: bool
    ends: bool


class Readings:
    """What memories tell, by a hash of their text, so that each text is read once. It has nothing to forget."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Reading, ...]] = {}

    def of(self, memory: Memory) -> tuple[Reading, ...]:
        """Return what the user's words in a memory tell."""
        meta = memory.meta
        spoken = (memory.kind, tuple(meta.get(SOURCES) or ()), tuple(speakers_in(meta)))
        key = hash((memory.text, spoken))
        if (known := self._known.get(key)) is None:
            known = tuple(
                Reading(
                    place, one.part, hash(one.key), frozenset(map(hash, one.key[1:])), one.rank, one.dated, one.ends
                )
                for place, sentence in enumerate(sentences_of(memory))
                for one in facts(sentence)
            )
            if len(self._known) >= MOST_READINGS:
                self._known.clear()
            self._known[key] = known
        return known
