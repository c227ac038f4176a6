"""The words of a clause with their classes, by libraries: jieba (`rjieba`) for Chinese, TextBlob for English.

In other languages with spaces, what no word list of the language has is taken for a noun.

A library is imported when its language comes up, because it takes memory (34 and 55 MB) and time (0.1 and 0.4 s). So
only the process that makes summaries pays for it. Japanese needs the package `suzume` (the extra `japanese`). Without
it, no words are known.

The libraries give each word one class, whatever stands around it. The few corrections below are of grammar: after "a"
stands no verb, after a number stands a measure word.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, get_args

from streams.language.telling import language_of
from streams.language.word_lists import sections

NOUN, NAME, ADJECTIVE, VERB, COUNT, LINK, OTHER, MARK = "nNavdpo|"
"""The letters of word classes. COUNT is a determiner, a number or a measure word; LINK is "of", "'s", 的, の."""

Tongue = Literal["en", "zh", "ja", "ko", "de", "es"]

LEAST_KNOWN: Final = 0.5
"""If TextBlob knows fewer of a clause's words, it is in another language: only capital letters make a noun."""


class Word(NamedTuple):
    """A word of a clause: where it begins and ends, and the letter of its class."""

    start: int
    end: int
    letter: str


_HAN: Final = re.compile("[\u4e00-\u9fff]+")
_NUMBER: Final = re.compile("[一二两三四五六七八九十百千万几半每0-9]+")
_GRAMMAR: Final = re.compile("[了着过的不得吗呢吧啊很都也就没是我你他她它这那么]|.个|个.")
"""A long word with one of these characters, as in 开了个 or 点不着, is a piece of a clause and names nothing."""

_ASPECTS: Final = frozenset("了着过")
"""Particles that follow verbs."""

_ADVERBS: Final = frozenset({"有点", "总算", "时候", "一共"})
"""Words of degree and time that the dictionary has as nouns."""

_TOKEN: Final = re.compile(
    r"n['’]t\b|['’](?:s|m|re|ve|d|ll)\b|\d[\w.,:%-]*"
    r"|[^\W\d_](?:(?!n['’]t\b)(?:\w|[.+#-](?=\w)))*|[^\w\s]",
    re.IGNORECASE,
)
_LINKS: Final = frozenset({"of", "for", "in", "at"})
_TIMES: Final = re.compile(
    r"(?:second|minute|min|hour|day|week|weekend|month|year|yr|morning|noon|afternoon|evening|night|time)s?|tonight|today"
    r"|tomorrow|yesterday|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:jan|febr)uary|march|april|may|june|july|august"
    r"|(?:septem|octo|novem|decem)ber|(?:some|any|every|no)(?:one|body|thing)",
    re.IGNORECASE,
)
"""Words that tell when, and indefinite pronouns: the lexicon has them as nouns, and they are no topic."""

_POINTS: Final = re.compile("th(?:is|at)", re.IGNORECASE)
_LETTERS: Final = {"NN": NOUN, "JJ": ADJECTIVE, "VB": VERB, "DT": COUNT, "CD": COUNT, "PRP$": COUNT, "NNP": NAME}


_LINKING: Final = {
    language: frozenset(words.split())
    for language, words in {
        "de": "von vom für fürs mit im in am der des dem den die das zum zur auf aus ohne bei an ins",
        "es": "de del en para con a al por el la los las sin un una",
        "ko": "",
    }.items()
}
"""By language: words that may stand between two nouns of a phrase."""

_NAMELESS: Final = {
    language: frozenset(words.split())
    for language, words in {
        "de": "die welchen bisschen halt mal doch ganz los weiter echt so also jetzt dran wäre hätte",
        "es": "no y e o u sin va voy van ir sea puede bien mal aquí ahí así solo casi todavía aún",
        "ko": """
            그럼 이제 완전히 근데 그리고 혹시 진짜 너무 많이 다시 그냥 아직 일단 좀 더 잘 안 못 꼭 바로 같이 먼저 지금
            오늘 내일 어제 그건 이건 저건 그거 이거 요즘 아마 역시 또 빨리 제일 하나 둘 다 것 거 수 때 중 등
        """,
    }.items()
}
"""By language: words that the word lists lack, and that name nothing."""

_SPACED: Final = re.compile(r"\d[\w.,:%-]*|[^\W_](?:\w|['’.+-](?=\w))*|[^\w\s]")
_CASED: Final = re.compile(r"\w\W+[A-ZÄÖÜ]\w")
"""A German clause whose writer begins nouns with capital letters, as most do: then other words are none."""

_PARTICLE: Final = re.compile(
    "(?<=..)(?:에서는|에서|에게|한테|으로|까지|부터|이랑|이나|이라|에는|에도|은|는|이|가|을|를|의|에|로|도|와|과|랑|만)$"
)
_AFTER_NOUN: Final = re.compile("[이가을를의에로랑]|으로|한테|까지|부터")
"""Particles that seldom follow a verb."""

_PREDICATE: Final = re.compile(
    "(?:[요다까죠네지고서면게어아여해돼줘봐자야든데음할볼갈될줄올한된인같는던러며건히ㅋㅎㅠ]|려고|있는|없는|싶은|도록|워)$"
)
"""The endings of Korean verbs, adjectives and adverbs."""


def tongue_of(text: str) -> Tongue:
    """Return the language whose words are looked for in a text: English if it is in none of the others."""
    found = language_of(text)
    return found if found in get_args(Tongue) else "en"  # type: ignore[return-value]


def words_of(clause: str, tongue: Tongue) -> list[Word]:
    """Return the words of a clause, without blanks. The list is empty if the language's library is missing."""
    read = {"zh": _chinese, "ja": _japanese, "en": _english}.get(tongue)
    return read(clause) if read else _spaced(clause, tongue)


@lru_cache(maxsize=4)
def _listed(language: str) -> frozenset[str]:
    """Return the words of a language that name nothing by themselves."""
    lists = sections(language)
    names = ("function", "self", "you", "asking", "courtesy")
    return _NAMELESS[language].union(word for name in names for word in lists.get(name, ()) if "*" not in word)


def _spaced(clause: str, language: str) -> list[Word]:
    words: list[Word] = []
    cased = language == "de" and _CASED.search(clause)
    for token in _SPACED.finditer(clause):
        text, (start, end) = token[0], token.span()
        lower = text.lower()
        if not text[0].isalnum():
            letter = MARK
        elif text[0].isdigit():
            letter = COUNT
        elif lower in _LINKING[language]:
            letter = LINK
        else:
            particle = _PARTICLE.search(text) if language == "ko" else None
            stem = text[: particle.start()] if particle else text
            inflected = language == "ko" and not (particle and _AFTER_NOUN.match(particle[0]))
            none = lower in _listed(language) or (inflected and _PREDICATE.search(stem)) or (cased and text == lower)
            letter = OTHER if none else NOUN
            if particle and not none:
                words.append(Word(start, start + len(stem), letter))
                start, letter = start + len(stem), LINK if particle[0] == "의" else OTHER
        words.append(Word(start, end, letter))
    return words


def _chinese(clause: str) -> list[Word]:
    words: list[Word] = []
    at, before = 0, MARK
    for text, kind in _cut(clause):
        letter = _chinese_letter(text, kind, before)
        if text in _ASPECTS and words and words[-1].letter == NOUN:
            words[-1] = words[-1]._replace(letter=VERB)  # whatever else it can be: 参观了
        inside = letter == NOUN and len(text) > 2 and text[-1] in "上里中"
        words.append(Word(at, at + len(text) - inside, letter))
        at += len(text)
        before = "number" if letter == COUNT and _NUMBER.fullmatch(text) else letter
        if letter == COUNT and text[-1] in "天年月日号点":
            before = OTHER  # a time, which counts nothing
    return words


def _cut(clause: str) -> Iterator[tuple[str, str]]:
    """Yield jieba's words with their classes.

    A word that is not in the dictionary is guessed by jieba: it is a noun if it is made of nouns, as a name is. Else
    it is cut into words of the dictionary.
    """
    tag, known = _jieba()
    for text, kind in tag(clause, True):
        parts = [(text, kind)] if not _HAN.fullmatch(text) or known(text) else tag(text, False)
        if len(parts) > 1 and all(part[0] in "nae" for _, part in parts):
            yield text, "n"
        else:
            yield from parts


def _chinese_letter(text: str, kind: str, before: str) -> str:
    if text == "的":
        return LINK
    if _NUMBER.fullmatch(text) or (before == "number" and _HAN.fullmatch(text) and len(text) < 3):
        return COUNT  # after a number, a measure word, whatever else it can be: 一大包
    if kind[0] in "xw" or not text.strip():
        return MARK
    if text in _ADVERBS or (len(text) > 2 and _GRAMMAR.search(text)):
        return OTHER
    if kind == "eng" or kind[:2] in ("nr", "ns", "nt", "nz"):
        return NAME
    if kind[0] in "nsj" or kind == "an" or (kind == "vn" and before in (NOUN, NAME)):
        return NOUN
    if kind[0] == "v" and len(text) > 1:
        thing = before in (COUNT, LINK) or (len(text) == 3 and text[-1] not in "来去起")
        return NOUN if thing else VERB
    if kind in ("a", "an", "ag", "b"):
        return ADJECTIVE
    return COUNT if kind[0] in "mq" else OTHER


def _japanese(clause: str) -> list[Word]:
    analyze = _suzume()
    words: list[Word] = []
    at = 0
    for text, kind in analyze(clause) if analyze else ():
        start = clause.find(text, at)
        if start >= 0:
            at = start + len(text)
            letter = LINK if text == "の" else NOUN if kind == "NOUN" and not _NUMBER.match(text) else OTHER
            words.append(Word(start, at, letter))
    return words


def _english(clause: str) -> list[Word]:
    tag, known = _textblob()
    found = list(_TOKEN.finditer(clause))
    tagged = tag([token[0].replace("’", "'") for token in found])
    spoken = [token[0] for token in found if token[0].isalpha()]
    foreign = sum(word in known or word.lower() in known for word in spoken) < LEAST_KNOWN * len(spoken)
    words: list[Word] = []
    before = MARK
    for token, (_, kind) in zip(found, tagged, strict=True):
        letter = _english_letter(token[0], kind, before)
        if letter == NOUN and kind == "NNS" and words and _POINTS.fullmatch(clause, words[-1].start, words[-1].end):
            letter = VERB  # "that makes sense"
        if letter == COUNT and words and clause[: words[-1].end].endswith("ing") and words[-1].letter == NOUN:
            words[-1] = words[-1]._replace(letter=VERB)  # "planning a trip"
        if foreign and letter in (NOUN, ADJECTIVE, VERB):
            letter = OTHER
        if (
            letter == NAME
            and before == LINK
            and words[-1].start + 2 == words[-1].end
            and clause[words[-1].start] in "'’"
        ):
            words[-1] = words[-1]._replace(letter=OTHER)  # "my name's Tom": a verb
        words.append(Word(token.start(), token.end(), letter))
        lower = token[0].lower()
        before = "subject" if kind in ("PRP", "MD") or lower in ("n't", "n’t", "'ll", "’ll", "to") else letter
    return words


def _english_letter(text: str, kind: str, before: str) -> str:
    if text[0] in "'’":
        return LINK if kind == "POS" and before in (NOUN, NAME) else OTHER
    if not text[0].isalnum():
        return MARK
    if text[0].isdigit():
        return COUNT
    if _TIMES.fullmatch(text):
        return OTHER
    if text.lower() in _LINKS:
        return LINK
    letter = _LETTERS.get(kind, _LETTERS.get(kind[:2], OTHER))
    if kind == "NNPS":
        return NAME
    if letter == VERB and (before == COUNT or (kind == "VBG" and before in (ADJECTIVE, LINK))):
        return ADJECTIVE if kind in ("VBN", "VBD", "VBG") else NOUN
    return VERB if letter == NOUN and before == "subject" else letter


@lru_cache(maxsize=1)
def _jieba() -> tuple[Callable[[str, bool], list[tuple[str, str]]], Callable[[str], bool]]:
    """Return jieba's functions: the words of a text with their classes, and whether the dictionary has a word."""
    import rjieba

    jieba = rjieba.Jieba()
    return jieba.tag, jieba.has_word


@lru_cache(maxsize=1)
def _textblob() -> tuple[Callable[[list[str]], list[list[str]]], dict[str, str]]:
    """Return the function that gives words their Penn Treebank tags, and the lexicon."""
    with _unimported("scipy", "sklearn", "pandas", "matplotlib"):
        from textblob.en import parser

    with warnings.catch_warnings():  # TextBlob reads its files at the first use, and leaves them to be closed
        warnings.simplefilter("ignore", ResourceWarning)
        parser.find_tags(["Siltstones", "layered"])
    return parser.find_tags, parser.lexicon


@contextmanager
def _unimported(*names: str) -> Iterator[None]:
    """Let packages seem to be missing. NLTK, which TextBlob imports, loads these if they are there, for parts that
    nothing here uses: 150 MB, a second, and a thread.
    """
    hidden: dict[str, Any] = {name: None for name in names if name not in sys.modules}
    sys.modules.update(hidden)
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


@lru_cache(maxsize=1)
def _suzume() -> Callable[[str], list[tuple[str, str]]] | None:
    """Return the function that gives words their classes, or None if the package is not installed."""
    try:
        from suzume import Suzume
    except ModuleNotFoundError:
        return None
    analyze = Suzume().analyze
    return lambda text: [(word.surface, word.pos) for word in analyze(text)]
