"""Reads whether a question asks for the first or the last of several occasions: "the first time", 最近一次.

The rules are narrow: "my first dog" is a thing, "last week" is a window, and 最后 alone means "in the end".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

Occasion = Literal["earliest", "latest"]


class Order(NamedTuple):
    """The occasion that is asked for, and the words of the question that say so."""

    first: Occasion
    text: str


#: Longer questions have no order. Two Chinese characters count as a word.
MOST_WORDS: Final = 16
_HAN: Final = re.compile("[\u4e00-\u9fff]")
_WORD_START: Final = re.compile(r"(?<![A-Za-z0-9'’-])[A-Za-z0-9]")

_MAY: Final = re.compile(r"(?i)first|last|latest|newest|earliest|recent|[一回]次|上[次回]|首次|一回|最[早新]")
_KEYWORD: Final = re.compile(r"(?i)(?<![\w-])(?:first|last|latest|newest|earliest|most recent(?:ly)?)(?![\w-])")
_CLAUSE_END: Final = re.compile(r"[?,.;:!–—\n]| - ")
_WORD: Final = re.compile(r"[\w'’-]+")
#: The number of words before a keyword that are read.
_NEAR: Final = 6


def words(text: str) -> frozenset[str]:
    """Return the set of the words of a text."""
    return frozenset(text.split())


_SUBJECTS: Final = words("i we you he she they it")
_OWNERS: Final = words("the my our your his her their its")
#: With these before it, "first" or "last" belongs to a noun: "my first dog".
_NOT_SUBJECTS: Final = _OWNERS | words("a an this that each every at very and or of in on for with to from")
_AUXILIARIES: Final = words("did have has had")
_UNITS: Final = words(
    "minute minutes hour hours day days night nights morning afternoon evening week weeks weekend month months year"
    " years decade century spring summer autumn fall winter quarter semester term season school christmas easter"
    " thanksgiving halloween new monday tuesday wednesday thursday friday saturday sunday january february march"
    " april may june july august september october november december few couple one two three four five six seven"
    " ten several"
)
#: Behind "did I first" and "did it last", what is no verb.
_NOT_VERBS: Final = _UNITS | words(
    "name names of and or aid thing class grade place floor for from until till so in at on to that the a an only"
    " longer long more as because before after but through over all"
)
#: "a first-time buyer"
_TIMERS: Final = words("buyer buyers home parent parents mom mum dad visitor user author voter")
#: Behind "earliest", what is on a timetable, or begins a range.
_SLOTS: Final = words("flight flights train bus ferry slot appointment possible date to")
_CAME: Final = words("happened came occurred began started arrived")

#: What asks without a question mark.
_ASKS: Final = re.compile(
    r"(?i) {0,3}(?:(?:please|and|so|hey|ok),? )?(?:when|what|where|which|who|whom|whose|how|did|was|were|do|does|has"
    r"|have|is|are|tell|show|find|list|give|remind|(?:can|could) you)\b"
)
_ASKS_ZH: Final = re.compile("什么|哪|谁|几|多少|多久|多大|何时|怎么|吗")
#: Words to look for, as agents write them: no sentence.
_WORDS_TO_FIND: Final = re.compile(
    r"(?i)(?:(?:my|our|the|user['’]?s?) )?(?:latest|newest|most recent|earliest|(?:first|last) time)\b"
    r"[^.!?,;]{0,60}\Z"
)
_STATES: Final = re.compile(r"(?i)\b(?:is|was|are|were|am)\b")
_PAST: Final = re.compile(
    r"(?i)\b(?:did|was|were|had|have|has|happened|came|occurred|began|started|arrived)(?:n['’]t)?\b|['’]ve\b"
)
_TOLD: Final = re.compile(r"(?i) (?:time )?(?:that |when )?(?:i|we|you|he|she|they|it|(?-i:[A-Z])[a-z]{1,20}) ")
_AHEAD: Final = re.compile(r"(?i)\b(?:can|could|should|will|would|may|might|must|shall)\b(?! you\b)")

_CHINESE: Final[tuple[tuple[Occasion, re.Pattern[str]], ...]] = (
    (
        "earliest",
        re.compile(
            "第一[次回](?!世界|工业|产业|鸦片|国内|国共|科技|作业|月考|考试)|首次(?!公开|付)|头一[次回]"
            "|最早(?!的?(?:航班|班车|一班|那班|车|高铁|飞机|火车|地铁|票))"
        ),
    ),
    ("latest", re.compile("最近的?[一那][次回]|上一?[次回](?![要该])|最后一[次回]|最新(?![款型鲜闻])")),
)
_AHEAD_ZH: Final = re.compile("可以|能(?![量力])|会(?![议员])|应该|需要|必须|打算|准备|想要")


def is_simple_question(text: str) -> bool:
    """True if a text is a short question, an order to tell something, or words to look for, and no statement.

    A long question has more conditions, and an order in time would count more than these.
    """
    if len(_WORD_START.findall(text)) + len(_HAN.findall(text)) / 2 > MOST_WORDS:
        return False
    if text.rstrip(" )\"'”’」").endswith(("?", "？")) or _ASKS.match(text) or _ASKS_ZH.search(text):
        return True
    return _WORDS_TO_FIND.match(text) is not None and _STATES.search(text) is None


def order_of(text: str) -> Order | None:
    """Return the order that a question asks for; None if there is none, or if there are both.

    >>> order_of("When did I first see the sea?"), order_of("What did my first boss say last week?")
    (Order(first='earliest', text='first see'), None)
    """
    if _MAY.search(text) is None or not is_simple_question(text):
        return None
    found = []
    if not _AHEAD_ZH.search(text):
        found += [Order(first, match[0]) for first, pattern in _CHINESE for match in pattern.finditer(text)]
    found += [order for match in _KEYWORD.finditer(text) if (order := _english(text, match)) is not None]
    return found[0] if len({one.first for one in found}) == 1 else None


def _english(text: str, match: re.Match[str]) -> Order | None:
    keyword = match[0].lower()
    *_, clause = _CLAUSE_END.split(text[: match.start()])
    before = _WORD.findall(clause.lower())[-_NEAR:]
    rest = _CLAUSE_END.split(text[match.end() :], maxsplit=1)[0]
    after = _WORD.findall(rest)[:2]
    following = after[0].lower() if after else ""
    if keyword in ("first", "last", "earliest") and not _past(text, match):
        return None
    if keyword in ("first", "last"):
        asked = _occasion(keyword, before, [one.lower() for one in after], text)
    elif keyword in ("latest", "newest"):
        owned = _owns(before[-1]) and before[-2:-1] != ["at"] if before else _WORDS_TO_FIND.match(text) is not None
        asked = owned and following not in _SUBJECTS
    elif keyword == "earliest":
        asked = following not in _SUBJECTS | _SLOTS
    else:
        asked = following not in _UNITS
    first: Occasion = "earliest" if keyword in ("first", "earliest") else "latest"
    return Order(first, f"{match[0]} {after[0]}" if after else match[0]) if asked else None


def _occasion(keyword: str, before: Sequence[str], after: Sequence[str], text: str) -> bool:
    """True if "first" or "last" is about a time, or stands between a subject and its verb."""
    following, owner = after[0] if after else "", before[-1] if before else ""
    if following == "time":
        return after[-1] not in _TIMERS
    if not following:
        done = owner in _CAME or (not _AUXILIARIES.isdisjoint(before) and owner not in _NOT_SUBJECTS)
        return keyword == "first" and done
    if following in _NOT_VERBS or following[0].isdigit() or owner in _NOT_SUBJECTS or owner.endswith(("'s", "’s")):
        return False
    if keyword == "last" and text[:9].lower() == "how long ":
        return False
    return not _AUXILIARIES.isdisjoint(before[:-1])


def _owns(word: str) -> bool:
    return word in _OWNERS or word.endswith(("'s", "’s"))


def _past(text: str, match: re.Match[str]) -> bool:
    if _AHEAD.search(text):
        return False
    return any((_PAST.search(text), _TOLD.match(text, match.end()), _WORDS_TO_FIND.match(text)))
