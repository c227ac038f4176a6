"""Finds words that are not the speaker's own: quotations, reports, texts to work on, dreams, and played roles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

#: A sentence after which a text to work on or a played role follows.
_OPENS: Final = re.compile(
    r"^(?:(?:please|kindly|can you|could you|would you|now|hi|hey|ok(?:ay)?|help me|help me to),? ){0,3}"
    r"(?:translate|rewrite|rephrase|paraphrase|proof-?read|summari[sz]e|correct|edit|improve|polish|shorten|write|draft"
    r"|compose|continue|complete|act as|pretend|imagine|role-?play)\b"
    r"|^dear [a-z]|^to whom it may concern|\bplay(?:ing|ed)? an? (?:character|role|part)\b|\blet['’]s (?:say|pretend"
    r"|imagine|assume|suppose|play|role-?play)\b|\brole-?play"
    r"|(?:请|帮我|帮忙|麻烦你?|把)[^，。：:我]{0,20}(?:翻译|润色|改写|续写|校对|总结|缩写|扩写|概括|修改)"
    r"|^(?:翻译|润色|改写|续写|校对|总结|缩写|扩写|概括)|扮演|^(?:尊敬的|亲爱的)|假装|假设",
    re.IGNORECASE,
)
#: Words of others, or of no one, in the sentence itself.
_REPORTED: Final = re.compile(
    r"\b(?:says|tells|thinks|claims|writes|asks|insists|believes|replies|jokes)\b"
    r"|(?<!\bi )(?<!\bwe )\b(?:said|told|asked|wrote|thought|claimed|replied|answered|shouted|joked)\b"
    r"|(?<!\bi )(?<!\bwe )\b(?:say|think|tell|claim|believe) (?:that )?(?:i|me|my|we)\b"
    r"|\b(?:according to|dream(?:ed|t|s)?|in (?:the|my|a) (?:story|novel|book|game|movie|film|play|song)|my character"
    r"|lyrics|for (?:example|instance)|assum(?:e|ing)|hypothetical\w{0,2}|quote:|say,? (?:i|we) )"
    r"|(?<![我来])(?<!我们)(?<!老实)(?<!坦白)(?<!句话)(?:说|讲|问|写道|觉得|认为|以为)[过了道]?[，,：:]?\s?[我咱]"
    r"|比如说?|比方|例如|梦[见到]|歌词|台词|告诉我",
    re.IGNORECASE,
)
#: The speaker in a quotation.
_QUOTED: Final = re.compile(
    r"[\"“”「『][^\"“”「」『』]{0,160}(?:\b(?:I|we|my|our|We|My|Our)\b|[我咱])|(?<!\w)['‘](?:I|We|My|Our)\b"
)
_OPEN_MARKS, _CLOSING_MARKS = "“「『", "”」』"
_INCHES: Final = re.compile(r"\d\"")


def opens_text(sentence: str) -> bool:
    """Return whether a text to work on, a letter, or a played role begins.

    >>> opens_text("Translate: I am a nurse."), opens_text("I translate books.")
    (True, False)
    """
    return _OPENS.search(sentence) is not None


def is_borrowed(sentence: str) -> bool:
    """Return whether a sentence may be of another person, or of no one.

    >>> is_borrowed("Tom said: I live in Oslo."), is_borrowed("I said that I live in Oslo.")
    (True, False)
    """
    rules = (_OPENS, _REPORTED, _QUOTED)
    return _opened(sentence) != 0 or any(rule.search(sentence) for rule in rules)


def own(sentences: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of a line that are not within a quotation of several sentences."""
    within = False
    for sentence in sentences:
        opened = _opened(sentence)
        if not within and not opened:
            yield sentence
        within = within != (opened % 2 == 1)


def _opened(sentence: str) -> int:
    """Return how many quotations the sentence leaves open; below 0 if it closes some that it has not opened."""
    straight = _INCHES.sub("", sentence).count('"') % 2
    return straight + sum(map(sentence.count, _OPEN_MARKS)) - sum(map(sentence.count, _CLOSING_MARKS))
