"""Counts the tokens of texts without a tokenizer: an estimate, and a limit that is rather too high."""

from __future__ import annotations

import math
import re
from typing import Final

_WORDS: Final = b" abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PIECE: Final = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<number>\d+)|(?P<han>[\u4e00-\u9fff])|(?P<kana>[\u3040-\u30ff])|(?P<hangul>[\uac00-\ud7a3])"
    r"|(?P<mark>[\u3000-\u303f\uff00-\uffef])|(?P<letters>[^\W\d_]+)|(?P<lines>\n+)|(?P<signs>[!-/:-@\[-`{-~]+)|(?P<other>\S)"
)
#: The tokens of one character, for pieces that are one character.
_OF_ONE: Final = {"han": 1.22, "kana": 1.0, "hangul": 1.15, "mark": 1.35, "lines": 1.0, "other": 1.5}


def estimated_tokens(text: str) -> int:
    """Estimate the number of tokens of a text in a vocabulary of some 100,000 tokens, such as OpenAI's `cl100k`.

    The weights were fitted on English and Chinese chats; `benchmarks/token_count.py` measures the error.

        >>> estimated_tokens("我对花生过敏"), estimated_tokens("I am allergic to peanuts")
        (8, 6)
    """
    total = 0.0
    for piece in _PIECE.finditer(text):
        kind, length = piece.lastgroup or "", piece.end() - piece.start()
        if kind == "word":
            total += 1 + 0.06 * max(0, length - 6)
        elif kind == "number":
            total += -(-length // 3)
        elif kind == "signs":
            total += 0.55 + 0.3 * length
        elif kind == "letters":
            total += 0.55 * length
        else:
            total += _OF_ONE[kind]
    return math.ceil(total)


def most_tokens(text: str) -> int:
    """Return a number of tokens that a text hardly exceeds, whatever the model's tokenizer is.

    Four Latin letters, two digits or signs, or one other character count as a token. Then 10 % is added as a margin.

        >>> most_tokens("我对花生过敏"), most_tokens("I am allergic to peanuts")
        (7, 7)
    """
    ascii_only = text.encode("ascii", "ignore")
    signs = len(ascii_only.translate(None, _WORDS))
    quarters = 4 * (len(text) - len(ascii_only)) + len(ascii_only) + signs
    return -(-quarters * 11 // 40)
