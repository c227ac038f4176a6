"""Reads the event from which a question counts: "before I moved to Oslo", "after the wedding", 搬家之前.

The rules are narrow: the event is a clause in the past, or a certain thing ("the wedding", not "work" or "a walk").
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, NamedTuple

from streams.language.order import is_simple_question, words

Relation = Literal["before", "after", "during"]


class Anchor(NamedTuple):
    """An event, in the words of the question, and on which side of it the question looks."""

    relation: Relation
    text: str


_MAY: Final = re.compile(r"(?i)before|after|since|until|while|prior to|前|后|以来|期间|的时候")
_RELATIONS: Final[dict[str, Relation]] = {
    "before": "before",
    "prior to": "before",
    "until": "before",
    "after": "after",
    "since": "after",
    "while": "during",
}
_RELATION: Final = re.compile(r"(?i)(?<!\w)(before|prior to|until|after|since|while) ")
#: With these before it, the word is not about time: "look after my dog", "who was before the judge?"
_NO_TIME: Final = words("look looks looked looking ask asked is are was were for")
#: With these in the same clause, "after" is not about time: "name my dog after my grandmother".
_NAMES: Final = re.compile(r"(?i)\b(?:nam(?:e[ds]?|ing)|called?)\b")
#: Plans and duties were said before the event, whatever they were for.
_PLANS: Final = re.compile(
    r"(?i)\b(?:plan(?:s|ned|ning)?|want(?:s|ed)? to|going to|intend(?:s|ed)? to|need(?:s|ed)? to|should|supposed"
    r"|(?:have|has|had)(?: (?:i|we|he|she|they|you))? to)\b"
)
_LAST_WORD: Final = re.compile(r"([a-z]{2,20}) ?\Z", re.IGNORECASE)
_ENDS: Final = re.compile(r"[,?.;!:—–\n，。？！]| - | (?:before|after|since|until|while) ")
#: What begins the question behind a clause without a comma: "before I moved where did I live?"
_ASKED: Final = re.compile(r"(?i) (?:what|where|when|who|whom|which|whose|how|did)\b")
_EVENT: Final = re.compile(
    # "I moved", not "I go"
    "(?:(?:i|we|he|she|they|you|it) (?!(?:go|do|am|is|are|can|should|will|have to|need)\\b)[a-z]"
    # "the wedding", "my sister got married", "Anna's party"
    "|(?:the|my|our|his|her|their|your|[a-z][\\w-]{1,20}['’]s) \\w{2}"
    # "Anna left", "Tom and I met"
    "|(?-i:[A-Z][a-z]{1,20}) (?:and (?:i|[a-z]{1,20}) )?[a-z]{3}"
    # "moving to Oslo"
    "|(?!(?:during|following|everything|anything|something|nothing|morning|evening|spring)\\b)[a-z]{2,20}ing\\b)",
    re.IGNORECASE,
)
#: "while I was in Berlin", not "while I like tea"
_STAY: Final = re.compile(
    "(?:(?:i|we|he|she|they|you|(?-i:[A-Z][a-z]{1,20})|my [a-z]{2,20}) (?:was|were|lived|stayed|worked|studied"
    "|travell?ed)|(?:in|at) (?-i:[A-Z]))",
    re.IGNORECASE,
)
_PAST: Final = re.compile(r"(?i)\b(?:did|was|were|had|have|has)(?:n['’]t)?\b|['’]ve\b")
_WORD: Final = re.compile(r"\w{2,}")
#: A clause of these words alone names no event: "before the first week of the year".
_IDLE: Final = words(
    "the my our his her their your of in on at and that this last next start beginning end middle day days night week"
    " weeks weekend month months year years morning evening afternoon summer winter spring autumn fall season time"
    " moment past first second we he she they it being was were did"
)
_MOST_CHARS: Final = 120

_CLAUSE_ZH: Final = re.compile(
    "(?P<text>[\u4e00-\u9fffA-Za-z0-9 ]{1,24}?)"
    "(?:(?P<before>之前|以前)|(?P<after>之后|以后|以来)|(?P<during>期间|的时候|那段时间))"
)
#: 前 and 后 alone, behind events of which few words begin so.
_BARE_ZH: Final = re.compile(
    "(?P<text>[\u4e00-\u9fffA-Za-z]{0,8}?(?:搬家|结婚|离婚|毕业|入职|离职|辞职|退休|换工作|出国|回国|怀孕|手术|婚礼|分手))"
    "(?:(?P<before>前)(?![一夕任妻夫女男面])|(?P<after>后)(?![天来面悔]))(?P<during>(?!))?"
)
_EVENT_ZH: Final = re.compile(
    "[搬][家到去来进出]|结婚|离婚|订婚|婚礼|毕业|入职|离职|辞职|退休|换工作|跳槽|升职|失业|开业|出国|回国|移民|怀孕|生孩子"
    "|生[了完]|出生|去世|住院|出院|手术|旅行|旅游|出差|面试|考试|高考|考研|考完|比赛|聚会|会议|开会|地震|疫情|车祸|事故|派对"
    "|装修|分手|认识|遇见|见面|开始|开学|大学|留学|上班|当兵|去[了过]?[\u4e00-\u9fff]|来[到了]|回[到了家]|离开|买[了到房车下]|卖[了掉]"
    "|学[会了习]|养了|换[了成]|到了|住在|在[\u4e00-\u9fff]{2}|成为|加入|参加|完成|戒[烟酒了]|拿到"
)
_LEAD_ZH: Final = re.compile("(?:自从|从|在|当|那么|请问|我想知道){1,3}")
_TIME_ZH: Final = re.compile(
    "(?:我们?|你|他|她)?[0-9一二三四五六七八九十两几半多很不好]{1,4}个?(?:年|月|周|天|日|小时|分钟|星期|久)"
)
#: Without one of these, a question is about people in general: 手术前吃什么
_SOMEBODY_ZH: Final = re.compile("[我你他她您咱了过]|[A-Za-z]{2}")
#: Advice, plans and habits are not about the past.
_NOT_PAST_ZH: Final = re.compile(
    "应该|需要|必须|要(?![是求])|可以|能(?![量力])|会(?![议员])|打算|准备|通常|一般|经常|总是|习惯|每[天次周年月]|怎么办"
)


def anchor_of(text: str, windows: Collection[str] = ()) -> Anchor | None:
    """Return the first event from which a simple question about the past counts; None if there is none.

    A clause with one of the `windows` of the question is no event, because its time is known.

    >>> anchor_of("Where did I live before I moved to Oslo?")
    Anchor(relation='before', text='I moved to Oslo')
    """
    if _MAY.search(text) is None or not is_simple_question(text):
        return None
    found = _english(text) or _chinese(text)
    known = found is not None and any(one.split(",")[0] in found.text for one in windows)
    return None if known else found


def _english(text: str) -> Anchor | None:
    for match in _RELATION.finditer(text):
        before = text[: match.start()]
        clause, *_ = _ENDS.split(text[match.end() : match.end() + _MOST_CHARS], maxsplit=1)
        if _WORD.search(before) is None:
            clause, *_ = _ASKED.split(clause, maxsplit=1)
        rest = before + text[match.end() + len(clause) :]
        word, clause = match[1].lower(), clause.strip()
        previous = _LAST_WORD.search(before)
        if previous is not None and previous[1].lower() in _NO_TIME:
            continue
        if _PLANS.search(rest) or (word == "after" and _NAMES.search(before)):
            continue
        form = _STAY if word == "while" else _EVENT
        names = any(one not in _IDLE and not one.isdigit() for one in _WORD.findall(clause.lower()))
        if names and form.match(clause) and _PAST.search(rest):
            return Anchor(_RELATIONS[word], clause)
    return None


def _chinese(text: str) -> Anchor | None:
    if _SOMEBODY_ZH.search(text) is None:
        return None
    for pattern in (_CLAUSE_ZH, _BARE_ZH):
        for match in pattern.finditer(text):
            clause = match["text"].strip()
            if (lead := _LEAD_ZH.match(clause)) and len(clause) - lead.end() >= 2:
                clause = clause[lead.end() :]
            rest = text[match.end() :] if len(text) - match.end() > 1 else text[: match.start()]
            if _EVENT_ZH.search(clause) is None or _TIME_ZH.match(clause) or _NOT_PAST_ZH.search(rest):
                continue
            side: Relation = "before" if match["before"] else "after" if match["after"] else "during"
            return Anchor(side, clause)
    return None
