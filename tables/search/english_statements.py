"""Statements in English sentences. Words of the rules are in `english_statements.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tables.search.found_statement import Found


def _words() -> dict[str, list[str]]:
    """Return the words of each section of the file."""
    sections: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("english_statements.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            words = sections[line.strip("[]")] = []
        elif not line.startswith("#"):
            words += line.split()
    return sections


_SECTIONS: Final = _words()
_THING_CUES: Final = frozenset(
    part for name in ("heads", "changed", "openings") for word in _SECTIONS[name] for part in word.split("-")
)
_PERSON_CUES: Final = frozenset(_SECTIONS["lives"])
_CUES: Final = _THING_CUES | _PERSON_CUES
_WORD: Final = re.compile(r"[a-z]{3,}")

# Parts of the rules. Capital letters are told apart only where a part says so.
_HEAD: Final = f"(?:{'|'.join(_SECTIONS['heads'])})"
_CHANGED: Final = f"(?:{'|'.join(_SECTIONS['changed'])})"
_NO_VALUE: Final = rf"(?:{'|'.join(_SECTIONS['no value'])}|(?-i:[a-z]+(?:ed|ing)))\b"
_OWNER: Final = r"(?:my|our|the|(?-i:(?!(?:I|It|He|She|They|We|You)\b)[A-Z][\w-]*)(?:'s|’s)?)"
_OPENING: Final = (
    r"(?:(?:ok(?:ay)?|hi|hey|well|so|also|and|but|fyi|actually|btw|by the way|just so you know|for the record|no"
    r"|sorry|wait|please)[,:]?\s+){0,3}"
)
_REMEMBER: Final = r"(?:(?:please\s+)?(?:remember|note|keep in mind|know|be aware)(?:\s+that|:)|note:|reminder:)\s+"
_NEWS: Final = (
    r"(?:(?:please\s+)?updat(?:e|ing)(?:\s+(?:this|that|it|my memory|your notes))?|quick update|new info|correction"
    r"|change of plans?)[:,]\s+"
)
_NOUNS: Final = r"[^,:;.!?()]{0,60}?"
_NOW: Final = r"(?:(?:now|currently|actually|officially|from now on)\s+)?"
_IS: Final = rf"(?:\s+(?:is|are)|['’]s)\s+{_NOW}"
_RECENTLY: Final = (
    r"(?:\s+(?:just|now|recently|finally|currently|also|both|still|already|only|actually|officially)){0,3}"
)
_I: Final = r"\bi(?:['’](?:ve|m)| have| am)?" + _RECENTLY
_WE: Final = r"\b(?:i|we)(?:['’](?:ve|m|re)| have| am| are)?" + _RECENTLY
_PERSON: Final = rf"(?:[\w-]+\s+)?(?:{'|'.join(_SECTIONS['people'])})(?:\s+(?-i:[A-Z])[\w-]+)?"
_MY: Final = rf"\bmy\s+(?P<key>{_PERSON})(?:['’]s| has| have)?{_RECENTLY}"
_VALUE: Final = rf"(?P<value>(?!{_NO_VALUE})[^,;!?()]{{1,80}}?)"
#: A value that is a name.
_NAME: Final = r"(?P<value>(?:the\s+)?(?-i:[A-Z])[^,;!?()]{0,80}?)"
_END: Final = (
    r"(?=[,;!?()]|\.(?:\s|$)|\s[-–—]\s|$|\s(?:because|but|so|since|although|instead|rather than|not|and|which|who"
    r"|where|for|from|with|as|when|while|after|before|until|now|last|next|this|yesterday|today|tomorrow|again|though"
    r"|if|by|too|already|right now|in (?:\d|a|two|three))\b)"
)
_BEEN: Final = r"(?:(?:has|have|was|were|is|are|got|just|been)\s+){0,3}"
_TO: Final = r"(?:\s+(?:back|forward|up|down|again))?(?:\s+from\s+[^,;!?()]{1,40}?)?\s+to\s+"


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_BEGINNING: Final = rf"^{_OPENING}(?:{_REMEMBER})?(?:{_NEWS})?"
#: Of things, which the group `key` names.
_OF_THINGS: Final = (
    # the deadline is (now) 3 April; Ann's new phone number is 555-1234
    _rule(
        rf"{_BEGINNING}(?P<key>(?:{_OWNER}\s+)?{_NOUNS}\b{_HEAD}(?:\s+(?:for|of|in|at|on|with)\s+[^,:;.!?()]{{1,70}}?)?)"
        rf"{_IS}(?:(?:set|supposed|due|scheduled)\s+(?:to be|to|for|on)\s+)?(?:on|at|in|to|until|till)?\s*"
        rf"{_VALUE}{_END}"
    ),
    # the deadline (has been) moved to 3 April
    _rule(
        rf"{_BEGINNING}(?P<key>{_OWNER}\s+{_NOUNS})\s+{_BEEN}{_CHANGED}{_TO}"
        rf"{_VALUE}{_END}"
    ),
    # we moved the deadline to 3 April
    _rule(
        rf"{_BEGINNING}(?:i|we|they|he|she)(?:['’]ve| have| had)?{_RECENTLY}\s+(?:{_CHANGED}|move|change)"
        rf"\s+(?P<key>(?:my|our|the)\s+{_NOUNS}){_TO}{_VALUE}{_END}"
    ),
    # my dog is called Rex
    _rule(rf"{_BEGINNING}(?P<key>(?:my|our)\s+{_NOUNS})\s+(?:is|are)\s+(?:called|named)\s+{_VALUE}{_END}"),
    # remember that the tone for the shop is friendly; update this: the tone for the shop is now formal
    _rule(
        rf"^{_OPENING}(?:{_REMEMBER}(?:{_NEWS})?|{_NEWS})(?P<key>(?:(?:my|our|the)\s+)?[^,:;.!?()]{{3,90}}?)"
        rf"{_IS}{_VALUE}{_END}"
    ),
)
#: Of the speaker.
_OF_SPEAKER: Final = (
    ("home", _rule(rf"{_WE}\s+(?:live|living|settled)\s+in\s+{_NAME}{_END}")),
    *(
        (about, _rule(rf"{_I}\s+{pattern}"))
        for about, pattern in (
            ("home", rf"(?:moved|moving|relocated)(?:\s+\w+)?\s+(?:back\s+)?(?:to|into)\s+{_NAME}{_END}"),
            (
                "employer",
                rf"(?:joined|(?:work|working|started\s+working)\s+(?:at|for)|got a (?:new )?job at)\s+{_NAME}{_END}",
            ),
            ("occupation", rf"(?:work|working)\s+as\s+(?:an?\s+)?{_VALUE}{_END}"),
            ("school", rf"(?:(?:study|studying)\s+at|transferred\s+to)\s+{_NAME}{_END}"),
            ("age", r"(?P<value>\d{1,3})\s+years?\s+old"),
            ("age", r"turned\s+(?P<value>\d{1,3})\b"),
            ("weight", r"weigh\s+(?P<value>\d[\d.,]*\s*(?:kg|kilos?|pounds?|lbs?|stone)\b)"),
        )
    ),
)
#: Of a person whom the group `key` names.
_OF_OTHERS: Final = (
    ("home", _rule(rf"{_MY}\s+(?:lives|moved|relocated)(?:\s+back)?\s+(?:in|to)\s+{_NAME}{_END}")),
    ("employer", _rule(rf"{_MY}\s+(?:works|started)\s+(?:at|for)\s+{_NAME}{_END}")),
)
_ATTRIBUTES: Final = _rule(r"\b(?:new|current(?:ly)?|latest|updated|final|next|actual)\s+")
#: What held before, or would hold if, is no statement of what holds.
_FORMER: Final = _rule(r"\b(?:old|previous|former|last|first)\b")
_ELSEWHEN: Final = _rule(
    r"\b(?:when|if|before|after|wish|would|once|while|until|used to|ago|back then|as a (?:kid|child)"
    r"|in (?:19|20)\d\d)\b"
)
_OWN: Final = _rule(r"\b(?:my|our)\b")


def may_state(text: str) -> bool:
    """Return whether it is worth while to read the text. This is much cheaper than the rules."""
    return not _CUES.isdisjoint(_WORD.findall(text.lower()))


def stated(sentence: str) -> Iterator[Found]:
    """Yield what the sentence states."""
    words = _WORD.findall(sentence.lower())
    if not _PERSON_CUES.isdisjoint(words) and not _ELSEWHEN.search(sentence):
        for about, rule in _OF_OTHERS:
            if found := rule.search(sentence):
                yield Found(f"{about} {found['key']}", found["value"], own=True)
                return
        for about, rule in _OF_SPEAKER:
            if found := rule.search(sentence):
                yield Found(about, found["value"], own=True)
    if not _THING_CUES.isdisjoint(words):
        for rule in _OF_THINGS:
            found = rule.match(sentence)
            if found and not _FORMER.search(found["key"]):
                own = _OWN.search(found["key"]) is not None
                yield Found(_ATTRIBUTES.sub("", found["key"]), found["value"], own)
                return
