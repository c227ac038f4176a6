"""Checks that a rewording says nothing that its sentences do not say, as far as a check of words can tell.

Digits, numbers in words, names and times must stand in both, negations in both or in none, and half of the words of
each sentence in the rewording. A rewording that passes may still be wrong: "I teach Ann" and "Ann teaches me" have
the same names. The check also refuses good ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Final

_DIGITS: Final = re.compile(r"\d+")
#: Han, kana and hangul: scripts without capital letters, and mostly without spaces between words.
_EAST: Final = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
#: A word of any other script.
WORD: Final = re.compile(rf"[^\W\d_{_EAST}](?:[^\W{_EAST}]|['’-])*")
_SENTENCE_ENDS: Final = ".!?;:。！？；："
#: Endings that a name has in one sentence, and not in another.
_ENDING: Final = re.compile(r"['’](?:s|m|re|ve|ll|d)$|['’]$")
#: Characters that names have. Hiragana has the endings of words.
_NAMING: Final = re.compile("[\u30a1-\u30fa\u3400-\u9fff\uac00-\ud7a3]")


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: The least share of each sentence's words that a rewording has.
KEPT: Final = 0.5
#: Words count as the same if they have so many letters at their beginning in common.
ALIKE_CHARS: Final = 4
#: Words that are no names where they begin a sentence.
_OPENERS: Final = _listed(
    "the user is are was were has have had does do did will would can no not never also this these those there they "
    "their he she his her its it i my me we our lives lived works worked likes liked loves loved enjoys enjoyed "
    "prefers preferred dislikes hates avoids wants needs plans owns keeps studies studied teaches born allergic "
    "married named called from at in on with and or a an"
)
#: Numbers in words.
_NUMBERS: Final = _listed(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion half "
    "quarter dozen first second third fourth fifth twice once double"
)
#: Words that place a statement in time, relative to the day when it was said.
_TIMES: Final = _listed(
    "today tomorrow yesterday tonight now currently recently soon ago next last coming later earlier since until "
    "morning noon afternoon evening night midnight weekend week weeks month months year years day days hour hours "
    "minutes monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter"
)
_NEGATIVE: Final = _listed(
    "no not never none nobody nothing neither nor without cannot hate hates hated dislike dislikes disliked avoid "
    "avoids stopped quit former formerly anymore"
)
_NEGATIVE_ENDING: Final = re.compile(r"n['’]t$", re.IGNORECASE)
_NEGATIVE_CHINESE: Final = re.compile("[不没沒无無非未别別勿讨厌討厭戒]")
_NUMBERS_CHINESE: Final = re.compile("[零〇一二两兩三四五六七八九十百千万萬亿億半]+")
_TIMES_CHINESE: Final = re.compile(
    "[今明昨后後前]天|[今明昨]晚|[今明去前后後]年|[上下这這本][个個]?[周週月]|刚|剛|最近|现在|現在|以前|之前|之后|之後"
)
#: Characters of Chinese and Japanese that a rewording may have although its sentences do not.
_PARTICLES: Final = frozenset(
    "我的地得是在有和与與及也了着著过過这這那他她它其们們用户戶本人个個名位到于於从從为為叫做把被给給跟对對让讓会會要想将將喜欢歡爱愛住"
)

ADDED_NUMBER: Final = "a number that they do not have"
LOST_NUMBER: Final = "no number that they have"
ADDED_NAME: Final = "a name or word that they do not have"
LOST_NAME: Final = "no name that they have"
LOST_WORDS: Final = "too few of the words that they have"
OTHER_TIME: Final = "another time"
OTHER_NEGATION: Final = "another negation"


def fault_of(text: str, sentences: Sequence[str]) -> str:
    """Return what a rewording has that its sentences do not have, or lacks; empty if nothing is found.

    >>> fault_of("Lives in Oslo.", ["I live in Oslo."]), fault_of("Lives in Oslo, is 30.", ["I live in Oslo."])
    ('', 'a number that they do not have')
    """
    new, old = unicodedata.normalize("NFKC", text), unicodedata.normalize("NFKC", "\n".join(sentences))
    said, told = _words(new), _words(old)
    numbers, known = _numbers(new, said), _numbers(old, told)
    if numbers - known:
        return ADDED_NUMBER
    if known - numbers:
        return LOST_NUMBER
    if _added_names(new, told) or _added_characters(new, old):
        return ADDED_NAME
    if _names_within(old) - said:
        return LOST_NAME
    if any(_kept(unicodedata.normalize("NFKC", one), new, said) < KEPT for one in sentences):
        return LOST_WORDS
    if _times(new, said) != _times(old, told):
        return OTHER_TIME
    return OTHER_NEGATION if _is_negative(new, said) != _is_negative(old, told) else ""


def names_relative_time(sentence: str) -> bool:
    """Return whether a sentence names a time that depends on the day when it was said."""
    plain = unicodedata.normalize("NFKC", sentence)
    return bool(_times(plain, _words(plain)))


def _words(text: str) -> set[str]:
    """Return the words of a text in lower case, without endings such as 's."""
    return {plain_word(word) for word in WORD.findall(text)}


def plain_word(word: str) -> str:
    """Return a word in lower case, without an ending such as 's."""
    return _ENDING.sub("", word).casefold()


def _numbers(text: str, words: Collection[str]) -> set[str]:
    digits = {one.lstrip("0") or "0" for one in _DIGITS.findall(text)}
    return digits | (set(words) & _NUMBERS) | set(_NUMBERS_CHINESE.findall(text))


def _added_names(new: str, told: Collection[str]) -> bool:
    """Return whether a word with a capital letter, or of a script without capitals, is not among the words `told`."""
    for found in WORD.finditer(new):
        word = plain_word(found[0])
        if word in told or not _may_be_name(found[0]):
            continue
        if word in _OPENERS and begins_sentence(new[: found.start()]):
            continue
        return True
    return False


def _may_be_name(word: str) -> bool:
    """Return whether a word has a capital letter, or a letter of a script that has none."""
    return any(one.isalpha() and (one != one.lower() or one.lower() == one.upper()) for one in word)


def _added_characters(new: str, old: str) -> set[str]:
    """Return the Chinese, Japanese and Korean characters of a rewording that may be of a name its sentences lack."""
    return set(_NAMING.findall(new)) - set(old) - _PARTICLES


def _names_within(old: str) -> set[str]:
    """Return the names that do not begin a sentence, without the word I."""
    return {
        plain_word(found[0])
        for found in WORD.finditer(old)
        if found[0][0].isupper()
        and plain_word(found[0]) not in _OPENERS
        and not begins_sentence(old[: found.start()].rpartition("\n")[2])
    }


def begins_sentence(before: str) -> bool:
    """Return whether a sentence begins behind a text: at its beginning, or if no word follows its last full stop."""
    for char in reversed(before):
        if char.isalnum() or char == "_":
            return False
        if char in _SENTENCE_ENDS:
            return True
    return True


def _kept(sentence: str, new: str, said: Collection[str]) -> float:
    """Return the share of a sentence's longer words, and of its Chinese characters, that a rewording has."""
    beginnings = {word[:ALIKE_CHARS] for word in said}
    words = {word for word in _words(sentence) - _OPENERS - _TIMES if len(word) >= ALIKE_CHARS}
    words = {word for word in words if not _is_negation(word)}
    characters = set(_NAMING.findall(sentence)) - _PARTICLES
    kept = sum(word[:ALIKE_CHARS] in beginnings for word in words) + len(characters & set(new))
    return kept / total if (total := len(words) + len(characters)) else 1.0


def _times(text: str, words: Collection[str]) -> set[str]:
    return (set(words) & _TIMES) | set(_TIMES_CHINESE.findall(text))


def _is_negative(text: str, words: Collection[str]) -> bool:
    return any(map(_is_negation, words)) or bool(_NEGATIVE_CHINESE.search(text))


def _is_negation(word: str) -> bool:
    return word in _NEGATIVE or bool(_NEGATIVE_ENDING.search(word))
