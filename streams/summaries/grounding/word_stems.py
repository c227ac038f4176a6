"""The beginnings of the words of a text that have a meaning, in any language."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from streams.language.faithful import WORD
from streams.language.word_lists import CODES, sections
from tables.search.tokens import tokens, weight

STEM_CHARS: Final = 5
"""Words with the same beginning of this length count as the same, because words are inflected."""

_RUN: Final = re.compile(
    r"(?P<pairs>[\u3005-\u3007\u30a1-\u30fa\u30fc\u3400-\u9fff]+)|(?P<hangul>[\uac00-\ud7a3]+)"
    r"|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+"
)
_PARTICLES: Final = re.compile(
    "[的地得是在有和与與及也了着著过過这這那他她它其们們个個位到于於從从為为把被給给跟对對让讓会會要想将將]"
)
#: Words by which a summary tells who thinks what of something.
_REPORTING: Final = re.compile(
    r"\b(?:the )?users?\b"
    r"|\b(?:prefer|want|like|need|decide|plan|ask|mention|discuss|say|tell|talk)(?:s|d|ed|ing|red|ned)?\b"
    r"|\b(?:nutzer(?:in)?|usuari[oa]|möchte|prefiere|quiere)\b"
    r"|用户|用戶|偏好|喜欢|希望|决定|需要|计划|讨论|询问|提到|ユーザー|사용자|선호",
    re.IGNORECASE,
)


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text: without function words, numbers, and words such as "the user prefers".

    Han and katakana give pairs of characters, and a word of hangul its first two syllables.

    >>> sorted(stems("The user prefers walking to Málaga")), sorted(stems("用户对花生过敏"))
    (['malag', 'walk'], ['敏', '花生'])
    """
    found: set[str] = set()
    for run in _RUN.finditer(_REPORTING.sub(" ", text)):
        if run["pairs"]:
            for part in filter(None, _PARTICLES.split(run[0])):
                found.update([part[at : at + 2] for at in range(len(part) - 1)] or [part])
        elif run["hangul"]:
            found.add(run[0][:2])
        else:
            words = (word for word in tokens(run[0]) if len(word) > 1 and weight(word) == 1.0)
            found.update(word[:STEM_CHARS] for word in words if word not in _function_words())
    return frozenset(found)


def spaced_language_of(text: str) -> str:
    """Return the language with the most function words in a text, which has blanks between its words.

    Empty if two languages have equally many, as in a short text.
    """
    words = [word.casefold() for word in WORD.findall(text)]
    counts = sorted((sum(word in listed for word in words), code) for code, listed in _function_words_of().items())
    return counts[-1][1] if counts[-1][0] > counts[-2][0] else ""


@cache
def _function_words() -> frozenset[str]:
    """Return the terms of the function words of all languages but English, whose ones weigh little."""
    return frozenset(term for code in CODES for word in sections(code).get("function", ()) for term in tokens(word))


@cache
def _function_words_of() -> dict[str, frozenset[str]]:
    return {code: frozenset(sections(code).get("function", ())) for code in (*CODES, "en")}
