"""Sameness: decides whether two texts say the same, so that the newer text adds nothing to the older one.

The cosine of the vectors is not enough: "bees in Oslo: 45681" and "bees in Oslo: 45257" have a cosine of 0.95, and
two texts in a script that a model does not know may have a cosine of 1. So the rule reads both complete texts. It
ignores their formatting and filler, and compares the rest, in order: words, negations, names, numbers with their
signs, units, symbols, emoji, and the speakers. Every word is compared unless it is known to be filler.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tables.memories.filler import CHINESE, JAPANESE, Endings, Language, Phrases, language_of

_KANA = "\u3041-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_CJK = _KANA + _HAN
_ANY_KANA = re.compile(f"[{_KANA}]")
_PIECE: Final = re.compile(
    rf"""
    (?P<emoticon>(?<!\w)(?:[:;=][-'^]?[)(DPpOo/\\|*3\[\]]+|<3|[)(][:;])(?!\w))
    |(?P<run>[{_CJK}]+)
    |(?P<sign>(?<![^\W{_CJK}])(?<!\))-(?=\.?\d))
    |(?P<number>(?:(?<![^\W{_CJK}])(?<!\.)\.)?\d+(?:[.,:/-]\d+)*)
    |(?P<word>[^\W\d_{_CJK}]+(?:'[^\W\d_{_CJK}]+)*)
    |(?P<space>\s+)
    |(?P<mark>[^\w\s])
    """,
    re.VERBOSE,
)
_ENDS: Final = frozenset(".,;:!?()…。、—\u3001\uff61")
#: Marks that count as content, such as a percent sign, or the prime in "6′" (feet).
_TELLING: Final = frozenset("%‰@&§′″")
#: Symbols that are only formatting, such as those of tables and code.
_PLAIN: Final = frozenset("`|~^")
#: Variants of characters, and their replacements; invisible characters are removed. The Turkish ı and İ become i and
#: I, because most texts do not distinguish them in capitals.
_ARRANGED: Final = {ord(old): new for old, new in zip("’‘ʼ‐‑‒–−ıİ", "'''-----iI", strict=True)} | dict.fromkeys(
    [0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFE0E, 0xFE0F, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
#: Unicode's kinds of compatibility characters that mean the same as the plain character. The kind of superscripts is
#: not among them, because "5²" does not mean "52".
_MERE_FORMS: Final = frozenset(("<wide>", "<narrow>", "<compat>", "<font>", "<noBreak>", "<small>", "<vertical>"))

_ROLES: Final = {
    "user": "user human 用户 用戶 使用者 ユーザー 사용자 nutzer benutzer usuario пользователь",
    "assistant": "assistant ai bot 助手 助理 アシスタント 어시스턴트 assistent asistente ассистент",
}
_ROLE_OF: Final = {word: role for role, words in _ROLES.items() for word in words.split()}
_PREFIX: Final = re.compile(rf"^[^\S\n]*({'|'.join(_ROLE_OF)})[^\S\n]*:[^\S\n]*", re.IGNORECASE | re.MULTILINE)

_BEFORE_IS: Final = ("it", "that", "there", "here", "what", "who", "he", "she", "where", "how")
_SHORT_FORMS: Final = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "i'm": ("i", "am"),
    "im": ("i", "am"),
    "dont": ("do", "not"),
    "cant": ("can", "not"),
    **{f"{word}'s": (word, "is") for word in _BEFORE_IS},
}
_SHORT_ENDINGS: Final = (("n't", "not"), ("'re", "are"), ("'ve", "have"), ("'ll", "will"))
#: Tokens that a text may spell in another way ("not" in "don't"). A search for such a token in a text may fail, even
#: if the text has it.
_FULL_FORMS: Final = frozenset(
    ["?", "你", "den", "dem", "des", "can", "will", "shall", "do", "i", "am", "is", "are", "have", "not"]
)


@dataclass(slots=True)
class _Clause:
    """A clause as tokens (kind, text): words as written, runs of Chinese or Japanese characters, numbers, marks.

    `asks` is true if the clause ends with a question mark.
    """

    tokens: list[tuple[str, str]]
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """The tokens of a text. `everything` has all of them, and `content` has all but filler.

    `verbatim` has the tokens of `content` that are spelled in the same way in every text with the same content.
    """

    text: str
    everything: tuple[str, ...]
    content: tuple[str, ...]
    verbatim: tuple[str, ...]

    def may_be_in(self, lower: str) -> bool:
        """Return whether a text from `in_lower_case` has all `verbatim` tokens. If not, `same` is false.

        This is a fast test, to be made before `same`.
        """
        return all(token in lower for token in self.verbatim)

    def same(self, other: Said) -> bool:
        """Return whether this text and another one say the same.

        If a text is only filler, both texts must have exactly the same tokens.
        """
        if self.text == other.text or (self.everything and self.everything == other.everything):
            return True
        return bool(self.content) and self.content == other.content


def says_the_same(one: str, other: str) -> bool:
    """Return whether two texts say the same: neither has a number, name, negation or other content of its own.

    >>> says_the_same("User: I'm allergic to nuts!", "Hi, I am allergic to nuts")
    True
    >>> says_the_same("I weigh 82 kilos", "I weigh 84 kilos"), says_the_same("Tom owes me", "I owe Tom")
    (False, False)
    """
    return one.strip() == other.strip() or said(one).same(said(other))


def said(text: str) -> Said:
    """Return the tokens of a text, for a comparison with other texts."""
    text = text.strip()
    lines = _normal(text)
    speakers = [_ROLE_OF[name.lower()] for name in _PREFIX.findall(lines)]
    clauses = list(_clauses(_PREFIX.sub("", lines)))
    written = [token for clause in clauses for kind, token in clause.tokens if kind == "word"]
    language = language_of([word.lower() for word in written])
    shouted = not any(map(str.islower, written))
    endings = JAPANESE if _ANY_KANA.search(lines) else CHINESE
    everything, content = list[str](), list[str]()
    for clause in clauses:
        question = ["?"] if clause.asks and not _is_question(clause, language, endings) else []
        everything += [*_plain(clause.tokens), *question]
        content += [*_plain(_without_filler(clause.tokens, language, endings, shouted)), *question]
    who = [f"{role}:" for role in speakers] if speakers not in ([], ["user"]) else []
    verbatim = dict.fromkeys(token for token in content if token not in _FULL_FORMS)
    return Said(
        text,
        (*who, *everything) if everything else (),
        (*who, *content) if content else (),
        tuple(sorted(verbatim, key=len, reverse=True)),
    )


def in_lower_case(text: str) -> str:
    """Return the normalised text in lower case, in which `Said.may_be_in` looks for tokens."""
    return _normal(text.strip()).lower()


def _normal(text: str) -> str:
    """Replace full-width and other compatibility characters by plain ones, and all digits by ASCII digits."""
    if not text.isascii():
        if not unicodedata.is_normalized("NFKC", text):
            text = unicodedata.normalize("NFC", "".join(map(_normal_character, text)))
        text = text.translate(_ARRANGED)
        text = "".join(str(unicodedata.decimal(c)) if c > "\x7f" and c.isdecimal() else c for c in text)
    return text


@lru_cache(maxsize=4096)
def _normal_character(character: str) -> str:
    kind = unicodedata.decomposition(character).partition(" ")[0]
    return unicodedata.normalize("NFKC", character) if kind in _MERE_FORMS else character


def _clauses(text: str) -> Iterator[_Clause]:
    clause = _Clause([])
    for match in _PIECE.finditer(text):
        kind, token = match.lastgroup, match.group()
        assert kind is not None, "each piece has a kind"
        if kind == "space":
            ends = "\n" in token or _between_runs(text, match)
        elif kind == "mark":
            if _tells(text, match.start()):
                clause.tokens.append((kind, token))
                continue
            ends = token in _ENDS
            if token == "?":
                clause.asks = True
        else:
            clause.tokens.append((kind, token))
            continue
        if ends and clause.tokens and (clause.asks or not _asks_soon(text, match.end())):
            yield clause
            clause = _Clause([])
    if clause.tokens:
        yield clause


def _asks_soon(text: str, start: int) -> bool:
    """Return whether a question mark is among the marks directly at `start`, as in "!?"."""
    for character in text[start : start + 8]:
        if character == "?":
            return True
        if character not in "!.…":
            return False
    return False


def _between_runs(text: str, match: re.Match[str]) -> bool:
    """Return whether a space is between two Chinese or Japanese characters, where it may stand for a comma."""
    before, after = match.start() - 1, match.end()
    return before >= 0 and after < len(text) and all(_is_cjk(text[place]) for place in (before, after))


@lru_cache(maxsize=4096)
def _is_cjk(character: str) -> bool:
    return re.match(f"[{_CJK}]", character) is not None


def _tells(text: str, place: int) -> bool:
    """Return whether the mark at `place` is content. Symbols and emoji are content, and punctuation is not.

    Some marks are content only next to a letter or a digit.
    """
    mark = text[place]
    before, after = text[place - 1 : place].isalnum(), text[place + 1 : place + 2].isalnum()
    if mark in "*/^":
        return before and after
    if mark == "#":
        return before or after
    if mark == "~":
        return text[place + 1 : place + 2].isdecimal()
    if mark in _TELLING:
        return True
    return mark not in _PLAIN and not unicodedata.category(mark).startswith("P")


def _plain(tokens: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the tokens' texts in lower case. A short form such as "don't" is written in full, as several tokens.

    Each character of a run of Chinese or Japanese characters becomes a token.
    """
    for kind, token in tokens:
        if kind == "run":
            yield from token.replace("您", "你")
        elif kind == "word":
            yield from _in_full(token.lower())
        else:
            yield token


def _in_full(word: str) -> tuple[str, ...]:
    if word in _SHORT_FORMS:
        return _SHORT_FORMS[word]
    if "'" in word:
        for ending, full in _SHORT_ENDINGS:
            if word.endswith(ending):
                return word.removesuffix(ending), full
    return (word,)


def _is_question(clause: _Clause, language: Language, endings: Endings) -> bool:
    """Return whether the words alone make the clause a question, so that its question mark adds nothing."""
    kind, first = clause.tokens[0]
    if kind == "word" and _in_full(first.lower())[0] in language.asking:
        return True
    return any(kind == "run" and endings.asking.search(token) for kind, token in clause.tokens)


def _without_filler(
    tokens: Sequence[tuple[str, str]], language: Language, endings: Endings, shouted: bool
) -> list[tuple[str, str]]:
    """Return a clause's tokens without its filler.

    If `shouted` is true, the whole text is in capitals, so a capital letter does not mark a name.
    """
    last = len(tokens) - 1
    bare = [
        (kind, endings.bare(token, place == 0, place == last) if kind == "run" else token)
        for place, (kind, token) in enumerate(tokens)
    ]
    kept = [(kind, token) for kind, token in bare if token]
    # In the middle of a clause, a word with a capital is a name.
    words = [
        token.lower() if kind == "word" and (place == 0 or shouted or not token[0].isupper()) else ""
        for place, (kind, token) in enumerate(kept)
    ]
    lower = [token.lower() for _, token in kept]
    if tuple(lower) in language.whole:
        return []
    begin = _leading(words, lower, language)
    end = len(kept) - _length(words[begin:], language.last, at_end=True)
    if end > begin and words[end - 1] in language.not_behind:
        end = len(kept)
    reduced = (_reduced(kept, words, place, place == begin, end, language) for place in range(begin, end))
    filtered = [(kind, token) for kind, token in reduced if token]
    if filtered and language.ending is not None and filtered[-1][0] == "word":
        pattern, instead = language.ending
        filtered[-1] = ("word", pattern.sub(instead, filtered[-1][1]))
    return filtered


def _leading(words: Sequence[str], lower: Sequence[str], language: Language) -> int:
    """Return the number of filler tokens at the beginning of the clause. At least one token is not counted."""
    begin = 0
    while True:
        length = _length(words[begin:], language.first)
        if not length:
            length = _length(words[begin:], language.before_openers)
            if length and lower[begin + length] not in language.openers:
                length = 0
        if not length or begin + length >= len(words):
            return begin
        begin += length


def _length(words: Sequence[str], phrases: Phrases, *, at_end: bool = False) -> int:
    """Return the number of words in the longest of `phrases` with which `words` begin (or end); 0 if there is none.

    A phrase that consists of all `words` is not considered.
    """
    for length in (3, 2, 1):
        if length < len(words) and tuple(words[-length:] if at_end else words[:length]) in phrases:
            return length
    return 0


def _reduced(
    kept: Sequence[tuple[str, str]], words: Sequence[str], place: int, begins: bool, end: int, language: Language
) -> tuple[str, str]:
    """Return the kind and the text of the token at `place`. Filler gets an empty text, and an article is replaced."""
    kind, token = kept[place]
    word = token.lower() if begins and kind == "word" else words[place]
    if not word:
        return kind, token
    before = "" if begins else words[place - 1]
    if word in language.anywhere and before not in language.not_behind:
        return kind, ""
    if place + 1 < end and kept[place + 1][0] in ("word", "number"):  # at the end, "a" is no article: "vitamin A"
        following = kept[place + 1][1].lower()
        if word in language.articles and following not in language.quantities:
            return kind, language.articles[word]
        pronouns, prepositions = language.articles_behind
        if word in pronouns and before in prepositions:
            return kind, ""
    return kind, token
