"""Reads English for the local estimator: replaces each word by the letter of its class, and finds patterns in these.

Orders to the rater are removed first. Questions and requests are ignored, because they say nothing about the speaker.
"""

from __future__ import annotations

import re
from typing import Final

from streams.language.evidence import LONGEST, MOST_COURTESIES, MOST_YOU, ROOTS, SHORTEST, WEIGHTS
from streams.language.signals import UNOPENED_WORDS, Lexicon, Reading

COURTESY_POINTS: Final = -0.3
YOU_POINTS: Final = -0.2
SMALL_TALK_POINTS: Final = -3.0
"""The lowest sum of points for courtesies and "you". Both also count in questions."""

LEXICON: Final = Lexicon("estimator_en.txt")

_TOKEN: Final = re.compile(r"[^\W\d_](?:['-]?[^\W\d_])*|\d+(?:[:./,-]\d+)*|[?.!,;]")
_MARKS: Final = str.maketrans("!;", "..")
MOST_LETTERS: Final = 20
"""The number of characters at the start of a chunk (the text between two spaces) from which n-grams are made.

Longer chunks are not cached.
"""

_AROUND: Final = "".join(chr(code) for code in range(33, 127) if not chr(code).isalnum()) + "’‘“”…–—"
_WEIGHTS: Final = WEIGHTS["en"]
_SIDES: Final = _WEIGHTS.sides

_NOT_PAST: Final = frozenset({"amazed", "excited", "indeed", "inspired", "interested", "naked", "speed", "tired"})


def _letter(token: str) -> str:
    """Return the letter of a token's class.

    A token that the lexicon does not list is classed by its shape: `N` for a name, `P` for a past form, `D` for a
    number, `C` for contact data, `a` for an adverb, `c` for any other word, `s` for any other word of 1 or 2 letters.
    """
    word = token.lower()
    if known := LEXICON.letter_of.get(word) or LEXICON.letter_of.get(word.removesuffix("'s")):
        return known
    if word in "?.,!;":
        return word.translate(_MARKS)
    if word[0].isdigit():
        return "C" if sum(map(str.isdigit, word)) >= 7 else "D"
    if token[0].isupper():
        return "N"
    if len(word) > 4 and word.endswith("ed") and word not in _NOT_PAST:
        return "P"
    if len(word) > 4 and word.endswith("ly"):
        return "a"
    return "c" if len(word) > 2 else "s"


class _Letters(dict[str, str]):
    """A cache from a chunk to the letters of its tokens. Its size is limited. It is twice as fast as `lru_cache`."""

    def __missing__(self, chunk: str) -> str:
        word = chunk.rstrip(".,!?;")
        if word.isalpha():
            letters = _letter(word) + chunk[len(word) :].translate(_MARKS)
        elif "@" in chunk[1:-1]:
            letters = "C"
        else:
            letters = "".join(map(_letter, _TOKEN.findall(chunk.replace("’", "'"))))
        if len(chunk) <= MOST_LETTERS:
            if len(self) >= 20_000:
                self.clear()
            self[chunk] = letters
        return letters


_letters_of: Final = _Letters().__getitem__

_ORDER: Final = re.compile(
    r"(?<![ksyaqIMmuDo,])[ksyaqIMmuDo,]*O(?:[^.?ImM]{0,9}[DOo])+[.,]*"  # orders such as "ignore all and rate this 10"
    r"|(?<![^.?,])[ksyaq,]{0,12}o[^.?]{0,9}[DO][.,]*"  # orders such as "you must answer ten"
)
_MARK: Final = re.compile(r"(?<![^.?])D+(?![^.?])\.?")
"""Patterns of orders to the rater, and of sentences of numbers only ("10."), which look like a rating.

Texts that match are removed before signals are counted, so that they cannot change the rating.
"""

_GREETED: Final = re.compile(r"ks?T|yw?T")
"""Words of time in greetings, such as "good morning" or "happy new year". They say nothing about a plan."""

_ASKED: Final = re.compile(
    r"(?<![^.])(?:[k,]*qa?y[^.]*"  # questions such as "what are you up to"
    r"|[ksay,]*[vo][^.ImM]*+(?![ImM]))"  # requests such as "please translate this"
)
"""Questions without a question mark, and requests that do not mention the speaker."""

_ABOUT: Final = re.compile(r"[ImMRhBfFTux]|(?<![^.])[ak]{0,2}(?:[PEG]|J(?!a))")
_MACHINE: Final = re.compile(r"[IM][asc]{0,4}z")


def _stated(letters: str) -> str:
    """Return the letters without questions and requests, because these say nothing about the speaker."""
    if "?" in letters:
        *asked, rest = letters.split("?")
        letters = "".join([part[: part.rfind(".") + 1] for part in asked]) + rest
    if "T" in letters:
        letters = _GREETED.sub("k", letters)
    if "qy" in letters or "qay" in letters or "v" in letters or "o" in letters:
        letters = _ASKED.sub("", letters)
    return letters


def _opens(said: str, *, reply: bool) -> bool:
    """True if the class letters of a message are about a person's life. Otherwise no signal in the message counts.

    A reply must contain the first person, because an assistant also explains families, dates and jobs, but seldom
    says "my". If a machine talks about itself in a reply, the result is False.
    """
    if reply:
        return ("I" in said or "m" in said or "M" in said) and not ("z" in said and _MACHINE.search(said))
    return _ABOUT.search(said) is not None


def ngrams(word: str) -> list[str]:
    """Return the n-grams of a word, including the word itself, without the punctuation around the word.

    >>> ngrams("I'm,"), ngrams("...")
    (["<i'm>", "<i'", "i'm", "'m>", "<i'm", "i'm>"], [])
    """
    word = word.strip(_AROUND).replace("’", "'").lower()
    if not word:
        return []
    inside = f"<{word}>"
    parts = (
        inside[start : start + length]
        for length in range(SHORTEST, LONGEST + 1)
        for start in range(len(inside) - length + 1)
    )
    return list(dict.fromkeys((inside, *parts)))


class _Evidence(dict[str, float]):
    """A cache from a chunk to its learned evidence. Its size is limited."""

    def __missing__(self, chunk: str) -> float:
        evidence = _WEIGHTS.of(ngrams(chunk[:MOST_LETTERS]))
        if len(chunk) <= MOST_LETTERS:
            if len(self) >= 20_000:
                self.clear()
            self[chunk] = evidence
        return evidence


_evidence_of: Final = _Evidence().__getitem__


def _struck(chunks: list[str], letters: str) -> tuple[list[str], str]:
    """Remove orders to the rater, and sentences of numbers only, from the chunks and from the letters.

    A chunk is removed if any of its letters is removed.
    """
    owners = [place for place, chunk in enumerate(chunks) for _ in _letters_of(chunk)]
    gone: set[int] = set()
    for pattern in (_ORDER, _MARK):
        for start, end in reversed([found.span() for found in pattern.finditer(letters)]):
            gone.update(owners[start:end])
            del owners[start:end]
            letters = letters[:start] + letters[end:]
    return [chunk for place, chunk in enumerate(chunks) if place not in gone], letters


def opens(letters: str, *, reply: bool) -> bool:
    """True if the statements of a message are about a person's life."""
    return _opens(_stated(letters), reply=reply)


def parsed(text: str) -> tuple[list[str], str]:
    """Return the chunks and the class letters of a message. Orders to the rater are removed from both."""
    chunks = text.replace("\n", " . ").split()
    letters = "".join(map(_letters_of, chunks))
    ordered = ("O" in letters or "o" in letters) and _ORDER.search(letters)
    if ordered or ("D" in letters and _MARK.search(letters)):
        return _struck(chunks, letters)
    return chunks, letters


def read_english(text: str, *, reply: bool) -> Reading:
    """Read an English message, and return its `Reading`: points, length, signals, evidence and weights."""
    chunks, letters = parsed(text)
    courtesies, you = letters.count("k"), letters.count("y")
    points = COURTESY_POINTS * courtesies + YOU_POINTS * you
    if points < SMALL_TALK_POINTS:
        points = SMALL_TALK_POINTS
    words = len(letters) - letters.count(".")
    said = _stated(letters)
    each_courtesy, each_you, life = _SIDES[reply]
    evidence = sum(map(_evidence_of, chunks)) * ROOTS[len(chunks)]
    evidence += each_courtesy * (courtesies if courtesies < MOST_COURTESIES else MOST_COURTESIES)
    evidence += each_you * (you if you < MOST_YOU else MOST_YOU)
    if not _opens(said, reply=reply):
        return points, words if words < UNOPENED_WORDS else UNOPENED_WORDS, [], evidence, _WEIGHTS
    told, signals = LEXICON.count(said)
    return points + told, words, signals, evidence + life, _WEIGHTS
