"""Tells Chinese, Japanese and Korean apart by the characters of a text."""

from __future__ import annotations

import re
from typing import Final, Literal

_HAN: Final = re.compile("[\u4e00-\u9fff]")
_KANA: Final = re.compile("[\u3041-\u309f\u30a1-\u30fa\u30fc]")
_HANGUL: Final = re.compile("[\uac00-\ud7a3]")
_LATIN: Final = re.compile(r"[^\W\d_\u3041-\u30fc\u4e00-\u9fff\uac00-\ud7a3]+")


def is_chinese(text: str) -> bool:
    """True if the text is Chinese, as `script_of` decides."""
    return script_of(text) == "zh"


def script_of(text: str) -> Literal["zh", "ja", "ko"] | None:
    """Return the language of a text that is mostly Chinese, Japanese or Korean, or None for any other text.

    A text is mostly in these languages if it has more characters of their scripts than words in other letters. For
    example, "我住在 Berlin" is Chinese.

    A text is Japanese if enough of its characters are kana, and Korean if most of them are hangul.
    """
    if text.isascii():
        return None
    han, kana, hangul = (len(pattern.findall(text)) for pattern in (_HAN, _KANA, _HANGUL))
    if max(han + kana, hangul) <= len(_LATIN.findall(text)):
        return None
    if hangul > han + kana:
        return "ko"
    return "ja" if kana and 8 * kana >= han else "zh"
