"""Splits texts into index terms, and weighs the terms of a query. All functions are pure and deterministic.

Terms and statements are stored with each memory, so raise `RULES` whenever a rule in this module, or one of
statements, changes.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

#: The version of the rules. Stored terms and statements of another version are recomputed.
RULES: Final = 3

#: Chinese, Japanese and Korean characters, with 々, 〆 and 〇, and the rare characters of the supplementary planes.
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_FIRST_CJK = _CJK[0]
_CJK_START = re.compile(f"[{_CJK}]")
_ASCII_RUN = re.compile(r"[^\W_]+(?:'[^\W_]+)*", re.ASCII)
#: Scripts without spaces between words: Thai, Lao, Burmese, Khmer.
_UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")


def _combining() -> str:
    """Return all combining marks (Mn, Mc), as ranges for a character class."""
    marks = {point for point in range(0x300, 0x1_1FFF) if unicodedata.category(chr(point)) in ("Mn", "Mc")}
    starts = sorted(point for point in marks if point - 1 not in marks)
    ends = sorted(point for point in marks if point + 1 not in marks)
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


_MARK = _combining()
_LETTERS = rf"(?:[^\W_{_CJK}]|[{_MARK}])+"
_RUN = re.compile(f"[{_CJK}]+|{_LETTERS}(?:'{_LETTERS})*")
_CLUSTER = re.compile(f"[^{_MARK}][{_MARK}]*")
#: Optional marks, which are removed from a text: accents, Hebrew and Arabic points, and characters that only join or
#: separate letters.
_LEFT_OUT = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u200c\u200d]"
)


def _one_for_all() -> dict[int, str]:
    """Map each variant in `variants.txt` to the first character of its group."""
    lines = Path(__file__).with_name("variants.txt").read_text(encoding="utf-8").splitlines()
    groups = [group for line in lines if not line.startswith("#") for group in line.split()]
    return {ord(variant): group[0] for group in groups for variant in group[1:]}


_VARIANTS: Final = _one_for_all()

_ENGLISH_FUNCTION_WORDS = """
    a about after again all also am an and any are as at be been before being but by can could couldn
    did didn do does doesn doing don down for from had hadn has hasn have haven having he her here hers
    him his how i if in into is isn it its just may me might mine must my no nor not of off on or our
    ours out over shall she should shouldn so some than that the their theirs them then there these they
    this those to too up us very was wasn we were weren what when where which who whom whose why will
    with won would wouldn you your yours
"""
_CHINESE_FUNCTION_CHARACTERS = frozenset("的了是我你他她它们这那在有和就都也很不吗呢啊吧么什呀个其")

MINOR_WEIGHT: Final = 0.2


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a lower-case English word. Possessive, plural, -ing, -ed and final e are cut; y becomes i.

    Porter's stemmer also removes derivations (-ness, -ation, -er …). This one does not, because that did not improve
    results on the benchmark LoCoMo. A stem is a key, not a word: "hiking", "hiked" and "hikes" all give "hik".
    """
    word = word.partition("'")[0]
    if len(word) <= 3 or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith(("ies", "ied")):
        word = word[:-3] + "y"
    elif word.endswith(("ses", "xes", "zes")):
        word = word[:-2]
    elif word[-1] == "s" and word[-2] not in "su":
        word = word[:-1]
    for ending in ("ing", "ed"):
        bare = word.removesuffix(ending)
        if bare != word and len(bare) >= 3 and not set("aeiouy").isdisjoint(bare):
            doubled = bare[-1] == bare[-2] and bare[-1] not in "lsz"
            word = bare[:-1] if doubled else bare
            break
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    if len(word) > 3 and word[-1] == "y":
        word = word[:-1] + "i"
    return word


_FUNCTION_STEMS = frozenset(map(stem, _ENGLISH_FUNCTION_WORDS.split()))


def tokens(text: str) -> list[str]:
    """Return the index terms of a text, in reading order.

    Words and numbers are lower-cased, stripped of accents and points, and stemmed. A run of Chinese, Japanese or
    Korean gives its character pairs and then its single characters, which weigh little (see :func:`weight`). The
    single characters are needed because a question seldom repeats a whole word of the answer: 生日 may ask for 出生.
    Variants of a character give the same term. A run of Thai, or of another script without spaces, gives pairs of
    letters with their marks.

    >>> tokens("Málaga, hiking"), tokens("喜欢猫")
    (['malaga', 'hik'], ['喜欢', '欢猫', '喜', '欢', '猫'])
    """
    if text.isascii():
        return list(map(stem, _ASCII_RUN.findall(text.lower())))
    text = unicodedata.normalize("NFKD", text)
    text = unicodedata.normalize("NFC", _LEFT_OUT.sub("", text)).replace("’", "'")
    found: list[str] = []
    for run in _RUN.findall(text.lower()):
        if _is_cjk(run):
            run = run.translate(_VARIANTS)
            found += [run[i : i + 2] for i in range(len(run) - 1)]
            found += run
        elif _UNSPACED_START.match(run):
            letters = _CLUSTER.findall(run)
            found += ["".join(pair) for pair in pairwise(letters)] or letters
        else:
            found.append(stem(run))
    return found


def weight(token: str) -> float:
    """Return the weight of a query's token. Function words and single CJK characters weigh little.

    These tokens are not dropped, so that a query without other words still finds something. Their rarity (idf) cannot
    replace the weight: "what" and "did" only form the question, but they are rare in memories.
    """
    if not _is_cjk(token):
        return MINOR_WEIGHT if token in _FUNCTION_STEMS else 1.0
    if len(token) == 1 or _CHINESE_FUNCTION_CHARACTERS.issuperset(token):
        return MINOR_WEIGHT
    return 1.0


def has_cjk(text: str) -> bool:
    """True if the text has a Chinese, Japanese or Korean character."""
    return _CJK_START.search(text) is not None


def _is_cjk(token: str) -> bool:
    return token >= _FIRST_CJK and _CJK_START.match(token) is not None
