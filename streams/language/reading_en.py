"""Reads English for the local estimator: replaces each word by the letter of its class, and finds patterns in these.

Orders to the rater are removed first. Questions and requests are ignored, because they say nothing about the speaker.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, compress
from typing import Final

from streams.language.evidence import LONGEST, MOST_COURTESIES, MOST_YOU, ROOTS, SHORTEST, WEIGHTS
from streams.language.signals import UNOPENED_WORDS, Lexicon, Reading, Stated, full_stops

COURTESY_POINTS: Final = -0.3
YOU_POINTS: Final = -0.2
SMALL_TALK_POINTS: Final = -3.0
"""The lowest sum of points for courtesies and "you". Both also count in questions."""

LEXICON: Final = Lexicon("estimator_en.txt")

_TOKEN: Final = re.compile(r"[^\W\d_](?:['-]?[^\W\d_])*|\d+(?:[:./,-]\d+)*|[?.!,;:—]")
_MARKS: Final = str.maketrans("!;—", "..,")
MOST_LETTERS: Final = 20
"""The number of characters at the start of a chunk (the text between two spaces) from which n-grams are made.

Longer chunks are not cached.
"""

LINE_END: Final = "¶"
"""The chunk that stands for the end of a line. Its letter is a full stop."""

REMOVED_CODE: Final = "`"
"""The chunk that stands for code that was removed from a message. It has no letter."""

_AROUND: Final = "".join(chr(code) for code in range(33, 127) if not chr(code).isalnum()) + "’‘“”…–—" + LINE_END
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
    if word in "?.,!;:—":
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
        elif chunk == LINE_END:
            letters = "."
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
    r"(?<![^.])(?:[k,]*(?:qa?y|q[asr]{1,2}[It])[^.]*"  # questions such as "what are you up to"
    r"|[ksay,]*v[^.:ImM]*+(?![ImM])"  # requests such as "please translate this"; what follows a colon is no request
    r"|[ksay,]*o[^.ImM]*+(?![ImM]))"  # requests such as "write a poem"
)
"""Questions without a question mark, and requests that do not mention the speaker."""

_WITH_COLON: Final = re.compile(r"(?<![^.])[ksay,]{0,12}(v)[^.:]{0,40}:")
_WORK: Final = re.compile(
    r"(?:fix|correct|improve|rewrite|convert|translate|summari[sz]e|proofread|paraphrase|explain|continue)\b"
)
_WORK_ON_TEXT: Final = re.compile(
    r"\b(?:translate|summari[sz]e|proofread|paraphrase)\b"
    r"|\b(?:fix|correct|improve|rewrite|convert|continue)(?= ?:| (?:in|into|to|as)\b)"
    r"|\b(?:this|these|following)(?=:| (?:code|more|less|better|as|in|into|for|to|from|please|so)\b)"
    r"|\b(?:letter|text|sentence|paragraph|e?-?mail|essay|poem|story|message|grammar|spelling)s?"
    r"(?=:| (?:for|to|from|of|in|into|below|please|so|line|word)\b)"
)
"""Requests that bring a text to work on, such as "fix this letter: Dear Ann, I am". They match both patterns.

"Fix the bug: it crashes" brings none, and nor does "recommend a book: Mia is five". What they say is the user's own.
"""

_QUOTES: Final = {'"': '"', "“": "”"}
"""Quotation marks that begin a text, each with the one that ends it."""

_TOLD_FIRST: Final = re.compile(
    r"(?<![^.])(?:[k,]*[sw]?[IM][^.qy]*(?=[qy])"  # I am planning a trip to Rome and wonder if you …
    r"|(?![k,]*(?:[qv]|[asr]{1,3}(?:[yht]|I(?!a))))[^.ImM,]*[ImM][^.]*,)"  # since I moved to Oslo, …
)
"""The beginning of a question that tells something before it asks. "Can I" and "do you" begin a question."""

_OWN: Final = re.compile(r"[cNJWDT][^.?]{0,30}[sF](?=m[a-zN]?[cJNRWDKET])|[cNJWRT]s?(?=Ia{0,2}[PEB])")
"""What precedes something of the speaker's own in a question: "a case for my coin", "the soup I made"."""

_ABOUT: Final = re.compile(r"[ImMRhBfFTuxWr]|(?<![^.])[ak]{0,2}(?:[PEG]|J(?!a))")
_MACHINE: Final = re.compile(r"[IM][asc]{0,4}z")


def _stated(chunks: list[str], letters: str) -> str:
    """Return the letters with full stops in place of what says nothing about the speaker.

    These are questions, requests, and texts that are to be worked on.
    """
    if "?" in letters:
        *asked, rest = letters.split("?")
        letters = ".".join([*map(_before_question, asked), rest])
    if "T" in letters:
        letters = _GREETED.sub(lambda found: "k" * len(found[0]), letters)
    if "v" in letters and ":" in letters:
        letters = _without_texts(chunks, letters)
    if "q" in letters or "v" in letters or "o" in letters:
        letters = _ASKED.sub(full_stops, letters)
    return letters


def _without_texts(chunks: list[str], letters: str) -> str:
    """Return the letters with full stops in place of texts that are to be worked on.

    Such a text is the first line after the colon that is not empty. If a quotation mark begins it, it ends with the
    quotation. If it was code, it is already removed. Anything later is the user's own again.
    """
    begins = [*accumulate(map(len, map(_letters_of, chunks)), initial=0)]
    last = 0
    for found in _WITH_COLON.finditer(letters):
        verb, colon = bisect_right(begins, found.start(1)) - 1, bisect_right(begins, found.end() - 1) - 1
        request = " ".join(chunks[verb : colon + 1]).lstrip(_AROUND).lower()
        if found.start() < last or not _WORK.match(request):
            continue
        text = colon + 1
        after_colon = begins[text] == found.end()  # not as in "this:hola"
        while after_colon and text < len(chunks) and chunks[text] == LINE_END:
            text += 1
        end = chunks.index(LINE_END, text) if LINE_END in chunks[text:] else len(chunks)
        if text < end and chunks[text] == REMOVED_CODE:
            continue
        quoted = text < end and chunks[text][0] in _QUOTES
        if quoted or _WORK_ON_TEXT.search(request):
            last = begins[_end_of_quotation(chunks, text, end) if quoted else end]
            letters = letters[: found.end()] + "." * (last - found.end()) + letters[last:]
    return letters


def _end_of_quotation(chunks: list[str], begin: int, end: int) -> int:
    """Return the place after the chunk that ends the quotation; `end` if no chunk before it does."""
    mark = _QUOTES[chunks[begin][0]]
    for place in range(begin, end):
        if chunks[place][place == begin :].rstrip(".,!?;:").endswith(mark):
            return place + 1
    return end


def _before_question(part: str) -> str:
    """Return the letters before a question mark, with full stops in place of the question.

    A question may tell something before it asks: "since I moved to Oslo, which bank should I take". It may also name
    something of the speaker's own: "how long can I keep the soup I made on Sunday".
    """
    begin = part.rfind(".") + 1
    if told := _TOLD_FIRST.match(part, begin):
        begin = told.end()
    own = _OWN.search(part, begin)
    end = own.end() if own else len(part)
    return part[:begin] + "." * (end - begin) + part[end:]


def opens(said: str, *, reply: bool) -> bool:
    """True if the statements of a message are about a person's life. Otherwise no signal in the message counts.

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


def parsed(text: str) -> tuple[list[str], str]:
    """Return the chunks and the class letters of a message. Orders to the rater are removed from both."""
    chunks = text.replace("\n", f" {LINE_END} ").split()
    letters = "".join(map(_letters_of, chunks))
    ordered = ("O" in letters or "o" in letters) and _ORDER.search(letters)
    if ordered or ("D" in letters and _MARK.search(letters)):
        return _struck(chunks, letters)
    return chunks, letters


def stated(chunks: list[str], letters: str) -> Stated:
    """Return the statements of a message, given as the result of `parsed`."""
    said = _stated(chunks, letters)
    if said == letters:
        return Stated(chunks, letters, False)
    begins = accumulate(map(len, map(_letters_of, chunks)), initial=0)
    kept = list(compress(chunks, map(".".__ne__, map(f"{said}.".__getitem__, begins))))
    return Stated(kept, said, not said.strip(".,:k"))


def read_english(text: str, *, reply: bool) -> Reading:
    """Read an English message, and return its `Reading`: points, length, signals, evidence and weights."""
    chunks, letters = parsed(text)
    told, said, asked = stated(chunks, letters)
    opened = opens(said, reply=reply)
    if reply and not opened:
        return 0.0, 0, [], 0.0, _WEIGHTS
    courtesies, you = letters.count("k"), letters.count("y")
    points = COURTESY_POINTS * courtesies + YOU_POINTS * you
    if points < SMALL_TALK_POINTS:
        points = SMALL_TALK_POINTS
    words = len(letters) - letters.count(".")
    each_courtesy, each_you, life, only_asked = _SIDES[reply]
    evidence = sum(map(_evidence_of, told)) * ROOTS[len(told)]
    evidence += each_courtesy * (courtesies if courtesies < MOST_COURTESIES else MOST_COURTESIES)
    evidence += each_you * (you if you < MOST_YOU else MOST_YOU)
    evidence += only_asked * asked
    if not opened:
        return points, words if words < UNOPENED_WORDS else UNOPENED_WORDS, [], evidence, _WEIGHTS
    found, signals = LEXICON.count(said)
    return points + found, words, signals, evidence + life, _WEIGHTS
