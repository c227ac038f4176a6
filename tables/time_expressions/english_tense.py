"""Tells whether an English sentence is about the future, from the words around a time expression."""

from __future__ import annotations

import re
from typing import Final

_IRREGULAR: Final = (
    "ate|became|began|bought|broke|brought|built|came|caught|chose|cut|drank|drove|fell|felt|flew|forgot|fought|found|gave"
    "|got|grew|heard|held|hit|hurt|kept|knew|learnt|left|lost|made|met|paid|quit|ran|rang|read|rode|said|sang|sat|saw|sent"
    "|shot|slept|sold|spent|spoke|stood|stole|swam|taught|threw|told|took|understood|went|woke|won|wore|wrote|put"
)
_PARTICIPLES: Final = (
    "been|done|gone|seen|taken|given|written|broken|eaten|had|known|begun|come|become|become|forgotten"
)

#: Marks of a tense. Of the marks before an expression, the last one counts; without any, the first one behind.
_MARKS: Final = re.compile(
    r"(?P<past>"
    r"\b(?:was|were|did|had|used to|(?:was|were|did|had|could|have|has)n['’]?t)\b"
    r"|(?:\b(?:have|has)|['’]ve|['’]s)(?: (?:not|just|already|never|also|finally|i|you|we|they))?"
    rf" (?:[a-z]{{2,12}}ed|{_PARTICIPLES}|{_IRREGULAR})\b(?! (?:a|an|to|my|our)\b)"
    rf"|\b(?:[a-z]{{2,14}}ed(?<!need)|{_IRREGULAR})\b"
    r")|(?P<future>"
    r"\b(?:will|won['’]?t|shall|gonna|wanna|going to|should|must|ought|can|could|would|may|might|remind|remember to"
    r"|don['’]?t forget|let['’]?s|let me know|see you|due|deadline|appointment|exam|until|till|upcoming|planned"
    r"|scheduled"
    r"|wants?|needs?|hopes?|plans?|planning|intends?|please|(?:have|has) to"
    r"|(?:have|has) got (?:to|a|an|the|my|our|some)|are you free)\b"
    r"|['’](?:ll|d (?:like|love))\b|['’](?:ve|s) got (?:to|a|an|the|my|our|some)\b"
    r"|(?:\b(?:am|is|are|isn['’]?t|aren['’]?t)|['’](?:m|re|s))(?: (?:not|still|all|also|just|probably|only|both))?"
    r" [a-z]{2,14}ing\b"
    r")|(?P<present>"
    r"\b(?:am|is|are|isn['’]?t|aren['’]?t|has|have)\b|\b(?:it|that|there|what|when|who|where)['’]s\b|['’](?:m|re)\b"
    r"|\b(?:start|begin|open|close|leave|depart|arrive|land|end|come|return|expire|fly|flie|move|turn|finish|finishe|visit"
    r"|go|goe|get|take|run|meet|launch|launche|book|reserve|schedule|wake|order|pick|send|call)s?\b"
    r")",
    re.ASCII | re.IGNORECASE,
)
_LEANS_AHEAD: Final = re.compile(r"(?:by|until|till|before)\b", re.ASCII | re.IGNORECASE)


def happens_ahead(before: str, words: str, after: str) -> bool | None:
    """True for the future, False for the past, None if the sentence does not say.

    The present is a future ("my flight is on Sunday"), unless a mark of the past stands before it ("when did it
    start").

    >>> happens_ahead("I finished it ", "on Tuesday", ""), happens_ahead("", "On Tuesday", " we'll see")
    (False, True)
    """
    for marks in ([*_MARKS.finditer(before)][::-1], [*_MARKS.finditer(after)]):
        for mark in marks:
            if mark.lastgroup != "present":
                return mark.lastgroup == "future"
        if marks:
            return True
    return True if _LEANS_AHEAD.match(words) else None
