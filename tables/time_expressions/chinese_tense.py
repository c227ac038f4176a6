"""Tells whether a Chinese sentence is about the future, from the words around a time expression."""

from __future__ import annotations

import re
from typing import Final

#: Marks of the past and of the future. The first one behind an expression counts, for a Chinese verb follows its
#: time; without any, the last one before.
_MARKS: Final = re.compile(
    r"(?P<past>了(?!解)|过(?!年|节|生日|来|去|户|期|敏|会儿)|来着|曾|已经|当时|那时|那天|刚|说什么|的(?=[,，。!！]|$)|就一直|后悔)"
    r"|(?P<future>要(?!是)|(?<![开约聚机社议宴晚年误])会(?![议员计场所])|将|打算|准备|计划|想(?![起到了法念])|提醒"
    r"|记得(?!是|我|他|她|你|当)|别忘|到期|截止|必须|需要|应该|得(?=[去交把早提先赶])|可以|能(?!力|量)|希望|预计|预约|截至|再(?=[去来说看买聊])"
    r"|见(?![了过面到])|吧|之前|有(?![了过点些人一]))"
)


def happens_ahead(before: str, words: str, after: str) -> bool | None:
    """True for the future, False for the past, None if the sentence does not say.

    >>> happens_ahead("", "周五", "我去看了牙医"), happens_ahead("", "周五", "要交论文")
    (False, True)
    """
    mark = _MARKS.search(after)
    if mark is None:
        *_, mark = [None, *_MARKS.finditer(before)]
    return None if mark is None else mark.lastgroup == "future"
