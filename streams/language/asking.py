"""Readings: functions that decide whether a phrase in a text is a request.

"Remember my birthday" is a request, "do you remember my birthday?" is not. Most phrases of the settings always count
as a request. Some of our default phrases also occur in questions and stories. These phrases have a reading, which
decides by the other words of the sentence. Texts must be in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from schemas.phrases import ORDERS_FIRST, SUMMARY_PHRASES

Reading = Callable[[re.Match[str]], bool]
"""A function that returns True if the phrase that was found is a request."""

_CLAUSE: Final = re.compile(r"[.!?。！？؟\n;；؛:：,，、،…()（）\"“”—–]")
_SENTENCE: Final = re.compile(r"[.!?。！？؟\n…]+")


class Around(NamedTuple):
    """The text around a phrase.

    `before` and `after` are the other words of the phrase's clause. `end` is the mark that ends the clause. `rest` is
    the text after the phrase up to the end of the sentence.
    """

    before: str
    after: str
    end: str
    rest: str


def around(found: re.Match[str]) -> Around:
    """Return the text around a phrase that was found.

    >>> around(re.search("remember my", "hey, could you remember my name, please? thanks"))
    Around(before='could you', after='name', end=',', rest=' name, please?')
    """
    text, start, stop = found.string, found.start(), found.end()
    *_, before = _CLAUSE.split(text[max(0, start - 200) : start])
    following = text[stop : stop + 400]
    sentence, clause = _SENTENCE.search(following), _CLAUSE.search(following)
    rest = following if sentence is None else following[: sentence.end()]
    after, end = (following, "") if clause is None else (following[: clause.start()], clause[0])
    return Around(before.strip(), after.strip(), end, rest)


_OPENER: Final = re.compile(
    r"(?:(?:and|but|so|also|then|now|ok|okay|hey|hi|hello|well|oh|yes|no|just|always|kindly|simply|please|maybe"
    r"|from now on|in future|next time|again|therefore|try to|(?:be|make) sure (?:to|you)|never forget to"
    r"|i(?:['’]d| would)? (?:like|love|want|need|expect|ask)|you (?:to|must|should|have to|need to|can|could|may)"
    r"|(?:could|would|will|can) you|help me(?: to)?|siri|alexa|assistant)(?:\s+|$))*"
)
"""Words that may precede "remember" in a clause that is an order, such as "please"."""

_POLITE: Final = re.compile(r"\b(?:could|would|will|can) you\b|\bplease\b")
_TAG: Final = re.compile(
    r"(?:^|[\s,])(?:ok(?:ay)?|al(?:l )?right|please|yeah|right|(?:will|would|could|can) you)\s*\?+$"
)
"""Question tags that may follow an order, such as "…, ok?"."""

_ASKED_WHAT: Final = re.compile(r"(?:what|when|where|who|whose|which|how|why|if|whether|any\w*)\b")
_PAST: Final = re.compile(r"\s*(?:one\s+)?(?:time|day|night|summer|winter|trip|moment|scene|feeling)\b")
_SOMEBODY: Final = re.compile(
    r"\b(?:i|we|he|she|they|it|you|who|people|me|us|him|them)(?:['’](?:ll|d|ve|m|re|s))?"
    r"(?:\s+(?:still|also|even|really|always|never|only|do|does|did|don['’]?t|didn['’]?t|can|can['’]?t|cannot|could"
    r"|couldn['’]?t|will|would|should|must|might|may|not|to|ever|have|had|need|want|try))*$"
)
"""Subjects of "remember", such as "I still". A clause in which one of them precedes "remember" is no order."""


def orders_in_english(found: re.Match[str]) -> bool:
    """True if "remember that" or "remember my" is an order or a request."""
    near = around(found)
    if found[0].endswith("that"):
        if _PAST.match(found.string, found.end()):
            return False
        if not near.after and not near.end.startswith("?"):  # it ends the clause: "it is 4711 remember that"
            return not _SOMEBODY.search(near.before)
    if not _OPENER.fullmatch(near.before):
        return False
    polite = _POLITE.search(near.before)
    if near.rest.rstrip().endswith("?") and not (polite or _TAG.search(near.rest)):
        return False
    # "Can you remember my name?" is a question; "can you remember that I eat no meat?" is a request.
    return not (polite and polite[0] == "can you" and found[0].endswith("my") and near.rest.rstrip().endswith("?"))


def asks_politely(found: re.Match[str]) -> bool:
    """True if "could you remember" is a request. It is no request next to a question word.

    So "how could you remember" and "could you remember what …" are no requests.
    """
    near = around(found)
    return not near.before.endswith(("how", "why", "what", "who", "where")) and not _ASKED_WHAT.match(near.after)


def warns_in_english(found: re.Match[str]) -> bool:
    """True if "don't forget" is an order, not a statement ("I don't forget")."""
    before = around(found).before
    told = re.search(r"\b(?:i|we|he|she|they|who|people)(?:\s+(?:usually|just|really|still|often))*$", before)
    return told is None or re.search(r"\b(?:so|sure)\b", before) is not None


_SELF: Final = re.compile(
    r"(?:我|他|她|它|谁|誰|咱|大家|自己|[们們])(?:[都还還也会會要得能没沒不想才只就仍总總可]|已经|已經|应该|應該|必须|必須|可以|一直|永远"
    r"|永遠|好像|根本|终于|終於|完全|一定|曾经|曾經)*$|[没沒不难難还還忘]$|[没沒]有$|(?:怎么|怎麼|怎样|怎樣|如何)(?:才?能|可以)?$"
)
"""Subjects and negations before 记住 ("remember") with which it is a statement, not an order."""

_FOR_ME: Final = re.compile(r"[帮幫给給替]我[们們]?$")
_MODAL: Final = re.compile(r"能|可以|可不可以|可否|麻[烦煩]|[请請]")
_ASKING: Final = re.compile(r"(?:[吗嗎么麼没沒不]|[没沒]有)$")
_WHAT: Final = re.compile(r"什[么麼]|[谁誰哪几幾]|多少|怎[么麼样樣]")
_OPENER_ZH: Final = re.compile(
    r"(?:请|請|你|您|[们們]|要|一定|务必|務必|千万|千萬|必须|必須|应该|應該|最好|可以|可不可以|能不?能?|可|也|还要|還要|但是?|所以|那|就|好的?|嗯"
    r"|另外|顺便|順便|对了|對了|还有|還有|然后|然後|并且|都|[帮幫给給替]我|麻[烦煩]|以[后後]|下次|下周|下個?月|到时候?|到時候?|之[后後]|每[天次周年]"
    r"|[明后後今当當][天早晚]|[早晚]上|[上下中]午|今后|今後|晚点|早点|出[门門]前?|睡前|周|週|星期|礼拜|禮拜|[\d一二三四五六七八九十两]|点|點|半|号|號"
    r"|日|月|前|[后後]|的?[时時]候?|再|小\w)*"
)
"""Words that may precede 记得 ("remember to") in an order."""

_LONG_AGO: Final = re.compile(
    r"[我他她咱你]?[们們]?(?:小[时時]候|以前|[当當][时時年]|上[次回]|那|有一?[次年回]|曾|[刚剛]才|第一次|最[后後]一次|去年|前年|好像|[过過]|了|很|清楚|起)"
)


def orders_in_chinese(found: re.Match[str]) -> bool:
    """True if 记住 ("remember") is an order, not a question or a statement that a person remembers something."""
    near = around(found)
    if _FOR_ME.search(near.before):
        return True
    return not _SELF.search(near.before) and not _questions(near)


def reminds_in_chinese(found: re.Match[str]) -> bool:
    """True if 记得 begins an order ("remember to …"). In other sentences it means "to recall"."""
    near = around(found)
    if near.before.endswith(("不", "还", "還", "没", "沒")) or not _OPENER_ZH.fullmatch(near.before):
        return False
    if _LONG_AGO.match(near.after) or (near.before.endswith(("你", "您")) and _WHAT.search(near.after)):
        return False
    return not _questions(near)


def warns_in_chinese(found: re.Match[str]) -> bool:
    """True if 别忘了 ("don't forget") is an order, not reported speech ("he told me not to forget")."""
    return not re.search(r"(?:[说說]|叮[嘱囑]|(?:提醒|[叫让讓])(?:我|他|她))[:：]?$", around(found).before)


def _questions(near: Around) -> bool:
    if not (near.end in ("?", "？") or _ASKING.search(near.after.rstrip("呢啊呀了吧啦"))):
        return False
    return not _MODAL.search(near.before) or _WHAT.search(near.after) is not None


_NO_SUMMARY: Final = re.compile(
    r"\b(?:do not|don['’]?t|didn['’]?t|did (?:you|he|she|they)|have you|no need to|never"
    r"|how (?:to|(?:do|did|can|could|would|should) (?:i|we|you))"
    r"|why|(?:i|we|he|she|they) (?:always |usually |often |have to |had to |need to |must |will )?|(?<!you )to)\s*$"
    r"|(?:不用|不要|不必|不需要|[别別甭没沒]|[没沒]有|[为為]什[么麼]|怎[么麼]|怎[样樣]|如何"
    r"|(?<![帮幫给給替])我[会會要得想]?|[刚剛]才?|昨天|已[经經])[再去]?$"
)
_DONE: Final = re.compile(r"[了过過](?:[吗嗎没沒]|[没沒]有)?$")


def asks_for_a_summary(found: re.Match[str]) -> bool:
    """True if a phrase for a summary is a request.

    It is no request if the text declines or reports a summary, or asks how to make a summary or whether it was made.
    """
    near = around(found)
    return not _NO_SUMMARY.search(near.before) and not _DONE.search(near.after)


_POLITE_OPENER: Final = re.compile(
    r"(?:bitte|also|und|aber|hallo|ja|s'il te plaît|s'il vous plaît|et|mais|alors|por favor|y|pero|hola|oye"
    r"|per favore|ma|allora|alsjeblieft|alstublieft|en|maar|mas|olá|então|proszę|i|ale|cześć"
    r"|пожалуйста|и|а|но|только|lütfen|ve|ama|من فضلك|لو سمحت|و|e|[\s¡])*"
)
"""Words that may precede an order, such as "bitte", in languages in which an order begins its clause."""


def orders_first(found: re.Match[str]) -> bool:
    """True if the phrase begins its clause, and its sentence is no question.

    After other words, the phrase is a statement, such as "ella recuerda que …" ("she remembers that …").
    """
    near = around(found)
    if near.rest.rstrip().endswith(("?", "؟")):
        return False
    return _POLITE_OPENER.fullmatch(near.before) is not None


TO_REMEMBER: Final[dict[str, Reading]] = {
    **dict.fromkeys(ORDERS_FIRST, orders_first),
    **dict.fromkeys(("remember that", "remember my"), orders_in_english),
    "could you remember": asks_politely,
    **dict.fromkeys(("don't forget", "do not forget"), warns_in_english),
    **dict.fromkeys(("记住", "記住"), orders_in_chinese),
    **dict.fromkeys(("记得", "記得"), reminds_in_chinese),
    **dict.fromkeys(("别忘了", "別忘了", "别忘记", "別忘記", "不要忘了", "不要忘记", "不要忘記"), warns_in_chinese),
}
"""The readings of phrases that ask to remember only in some contexts.

Phrases such as 请记住 ("please remember") are requests in every context, so they have no reading.
"""

FOR_A_SUMMARY: Final[dict[str, Reading]] = dict.fromkeys(SUMMARY_PHRASES, asks_for_a_summary)
