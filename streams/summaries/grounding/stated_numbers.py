"""Numbers that a text states, in digits or in words, in forms that can be compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent
_DIGITS: Final = re.compile(r"\d+(?:[.,:：]\d+)*")
_WORD: Final = re.compile(r"[^\W\d_]+")
_CHINESE_DIGITS: Final = "零一二三四五六七八九"
_CHINESE_UNITS: Final = {"十": 10, "百": 100, "千": 1_000}
_SURELY: Final = re.compile("[二两兩三四五六七八九][十百千]|[百千][零一二三四五六七八九]")
_CHINESE: Final = re.compile("[零〇一二两兩三四五六七八九十百千]+")
#: What follows a number in Chinese or Japanese. Without one, the characters are often part of a word: 三明治.
_COUNTED: Final = re.compile(
    "[个個只本天日号號月年点點時时秒岁歳元块塊円万萬亿億次人名件份页頁张張位周週遍篇条斤米克公台]|分钟|分鐘"
)
#: Korean numbers of Korean origin, before what they count, and those of Chinese origin, which are words as well.
_KOREAN: Final = {"한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10}
_KOREAN_NUMBER: Final = re.compile(
    r"(?<![\uac00-\ud7a3])(?:(열)\s?)?(한|두|세|네|다섯|여섯|일곱|여덟|아홉)?\s?(?=[시명개살번마잔주달])"
)
_SINO_KOREAN: Final = str.maketrans("영공일이삼사오육칠팔구십백천", "零零一二三四五六七八九十百千")
_TIMES: Final = re.compile(
    r"\s?(?:(?P<ten>百|백|hundred|hundert|cien\w*|cento)|(?P<k>千|천|k\b|thousand|tausend|mil\b|mille\b)|(?P<wan>万|萬|만)|(?P<yi>亿|億|억)"
    r"|(?P<m>m\b|mio\b|million|millionen|millones))",
    re.IGNORECASE,
)
_FACTORS: Final = {"ten": 100, "k": 1_000, "wan": 10_000, "yi": 100_000_000, "m": 1_000_000}
_HALF_PAST: Final = re.compile(
    r"(?:half past|half) (\d{1,2})|(\d{1,2})(?:[点點時时]半|시 ?반| y media)", re.IGNORECASE
)
_HALF_TO: Final = re.compile(r"halb (\d{1,2})", re.IGNORECASE)
_TEENS: Final = re.compile(r"\b([2-9]0)[- ]([1-9])\b")
#: The largest number that is not checked if it is written as a word: "one of the", 两边.
_VAGUE: Final = 2
#: Longer runs of digits are no quantities, so they are not computed with.
_MOST_DIGITS: Final = 15
#: Number words from this value on multiply a number before them.
_LEAST_FACTOR: Final = 100


def known_numbers(text: str) -> frozenset[str]:
    """Return all forms of all numbers that a text may state, also where characters only might be a number.

    >>> sorted(known_numbers("fifty at 3:30"))
    ['3', '30', '3:30', '50']
    """
    plain = unicodedata.normalize("NFKC", text)
    words = _number_words()
    found = {str(words[word]) for word in _WORD.findall(plain.casefold()) if word in words}
    for values in (_worded(plain, least=0), plain):
        for token in _DIGITS.finditer(values):
            found.update(_forms(token, values))
            found.update(_bare(part) for part in re.split(r"[.,:：]", token[0]))
        found.update(f"{time[1] or time[2]}:30" for time in _HALF_PAST.finditer(values))
        found.update(f"{int(time[1]) - 1 or 12}:30" for time in _HALF_TO.finditer(values))
    found.update(str(_of_chinese(run)) for run in _CHINESE.findall(plain))
    korean = re.findall("[일이삼사오육칠팔구십백천]+", plain)
    found.update(str(_of_chinese(run.translate(_SINO_KOREAN))) for run in korean)
    found.update(f"{_of_chinese(run.translate(_SINO_KOREAN)) * 10_000}" for run in korean if f"{run}만" in plain)
    return frozenset(found)


def stated_numbers(text: str) -> Iterator[frozenset[str]]:
    """Yield the forms of each number that a text states. A text that has one of them states the same number.

    "One" and "two" are left out, because they seldom count.

    >>> [sorted(forms) for forms in stated_numbers("at 15:00, for 2k")]
    [['15', '15:00', '3', '3:00'], ['2', '2000']]
    """
    plain = unicodedata.normalize("NFKC", text)
    values = _worded(plain, least=_VAGUE)
    for token in _DIGITS.finditer(values):
        yield frozenset(_forms(token, values) | _other_clock(token, values))


def _worded(text: str, least: int) -> str:
    """Return the text with its number words in digits, if they are more than `least`."""
    words = _number_words()

    def spaced(found: re.Match[str]) -> str:
        value = words.get(found[0].casefold(), 0)
        return str(value) if least < value < _LEAST_FACTOR else found[0]

    def chinese(found: re.Match[str]) -> str:
        value = _of_chinese(found[0])
        is_number = _SURELY.search(found[0]) or _COUNTED.match(found.string, found.end())
        idiom = set("百千").issuperset(found[0])  # 千万别
        return str(value) if value > least and is_number and not idiom else found[0]

    def korean(found: re.Match[str]) -> str:
        value = sum(_KOREAN.get(part, 0) for part in found.groups() if part)
        return str(value) if value > least else found[0]

    text = _KOREAN_NUMBER.sub(korean, _CHINESE.sub(chinese, _WORD.sub(spaced, text)))
    return _TEENS.sub(lambda found: str(int(found[1]) + int(found[2])), text)


def _forms(token: re.Match[str], text: str) -> set[str]:
    """Return the forms of a number in digits: as it stands, without separators, and multiplied by what follows."""
    said = token[0].replace("：", ":")
    if ":" in said:
        hour, *rest = said.split(":")
        forms = {":".join([_bare(hour), *rest])}
        return forms | {_bare(hour)} if rest == ["00"] else forms
    parts = re.split("[.,]", said)
    forms = {".".join([_bare(parts[0]), *parts[1:]])}
    if len(parts) > 1 and all(len(part) == 3 for part in parts[1:]):
        forms.add(_bare("".join(parts)))
    if len(parts) == 2 and not parts[1].strip("0"):
        forms.add(_bare(parts[0]))
    if len(said) <= _MOST_DIGITS and (times := _TIMES.match(text, token.end())):
        factor = _FACTORS[times.lastgroup or ""]
        number = float(".".join(parts)) if len(parts) <= 2 else float("".join(parts))
        forms.add(str(round(number * factor)))
    return forms


def _other_clock(token: re.Match[str], text: str) -> set[str]:
    """Return a time of a 24-hour clock as one of a 12-hour clock, and the other way round."""
    hour, colon, minutes = token[0].replace("：", ":").partition(":")
    after = text[token.end() : token.end() + 6]
    is_time = colon or re.match(r"\s?(?:[点點時时]|시|uhr|h\b|[ap]\.?m)", after, re.IGNORECASE)
    if not hour.isdigit() or len(hour) > 2 or not is_time or not 0 < int(hour) < 24:
        return set()
    other = str(int(hour) + (12 if int(hour) < 12 else -12) or 12)
    return {f"{other}:{minutes}"} | ({other} if minutes == "00" else set()) if colon else {other}


def _bare(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _of_chinese(run: str) -> int:
    """Return the value of Chinese numerals.

    >>> _of_chinese("三百二十"), _of_chinese("三百二"), _of_chinese("二五")
    (320, 320, 25)
    """
    run = run[:_MOST_DIGITS].replace("〇", "零").replace("两", "二").replace("兩", "二")
    if not any(one in _CHINESE_UNITS for one in run):
        return int("".join(str(_CHINESE_DIGITS.index(one)) for one in run))
    total = digit = 0
    for one in run:
        if one in _CHINESE_UNITS:
            total += (digit or 1) * _CHINESE_UNITS[one]
            digit = 0
        else:
            digit = _CHINESE_DIGITS.index(one)
    before = _CHINESE_UNITS.get(run[-2:-1], 1)
    return total + digit * (before // 10 if before > 10 else 1)


@cache
def _number_words() -> dict[str, int]:
    found: dict[str, int] = {}
    for line in (_FOLDER / "number_words.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            value, *words = line.split()
            found |= {word: int(value) for word in words if word not in found}
    return found
