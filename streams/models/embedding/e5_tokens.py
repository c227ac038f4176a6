"""Splits texts into tokens for multilingual-e5-small, by sentencepiece's C++ library.

The wheel has the vocabulary, but no model file of sentencepiece. Such a file is a protobuf message, which is written
here, in memory. The message has no map of normalised characters, because sentencepiece needs this map in a compiled
form. Instead, the characters are replaced before the library gets the text.

The ids equal those of the wheel's tokenizer, with two exceptions. In the wheel, `<s>` and other control pieces in a
text become control tokens, and a text ends at its first NUL.
"""

from __future__ import annotations

import re
from typing import Any, Final

from streams.models.embedding import protobuf_writer as proto
from streams.models.embedding.e5_file import E5File

#: Fields of sentencepiece's ModelProto, and in it of TrainerSpec, NormalizerSpec and SentencePiece:
#: https://github.com/google/sentencepiece/blob/v0.2.1/src/sentencepiece_model.proto
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_MODEL_TYPE, _VOCABULARY, _UNKNOWN_ID, _BEGIN_ID, _END_ID, _PADDING_ID = 3, 4, 40, 41, 42, 43
_NAME, _DUMMY_PREFIX, _EXTRA_SPACES = 1, 3, 4
_TEXT, _SCORE, _TYPE = 1, 2, 3
_UNIGRAM: Final = 1
_UNKNOWN, _CONTROL = 2, 3

_MASK: Final = b"<mask>"
_SPACES: Final = re.compile("  +")
_NUL: Final = {0: ""}


class E5Tokenizer:
    """Splits texts. Raises `ImportError` without sentencepiece."""

    def __init__(self, file: E5File) -> None:
        from sentencepiece import SentencePieceProcessor

        self._pieces: Any = SentencePieceProcessor(model_proto=_model(file))
        self._normal = file.normal | _NUL
        self._unknown = file.unknown

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's pieces, without begin and end. A text without a character has no id."""
        text = _SPACES.sub(" ", text.translate(self._normal))
        text = text if text.startswith(" ") else f" {text}"
        ids: list[int] = self._pieces.encode(text)
        if self._unknown in ids:  # sentencepiece merges neighbouring unknown characters into one
            merged = zip(ids, self._pieces.encode(text, out_type=str), strict=True)
            ids = [one for id_, piece in merged for one in ([id_] * (len(piece) if id_ == self._unknown else 1))]
        return ids


def _model(file: E5File) -> bytes:
    """Return sentencepiece's model with the vocabulary of the file. It does not change texts, except for spaces."""
    scores = [proto.float32(_SCORE, score) for score in file.scores]
    heads = [_head(length, len(scores[0])) for length in range(max(map(len, file.pieces)) + 1)]
    pieces = [heads[len(piece)] + piece + score for piece, score in zip(file.pieces, scores, strict=True)]
    kinds = dict.fromkeys((file.begin, file.end, file.padding, file.pieces.index(_MASK)), _CONTROL)
    for id_, kind in (kinds | {file.unknown: _UNKNOWN}).items():
        pieces[id_] = proto.message(_PIECES, proto.message(_TEXT, file.pieces[id_]), proto.integer(_TYPE, kind))
    trainer = (
        proto.integer(_MODEL_TYPE, _UNIGRAM),
        proto.integer(_VOCABULARY, len(pieces)),
        proto.integer(_UNKNOWN_ID, file.unknown),
        proto.integer(_BEGIN_ID, file.begin),
        proto.integer(_END_ID, file.end),
        proto.integer(_PADDING_ID, file.padding),
    )
    normalizer = (proto.string(_NAME, "identity"), proto.integer(_DUMMY_PREFIX, 0), proto.integer(_EXTRA_SPACES, 0))
    return b"".join((*pieces, proto.message(_TRAINER, *trainer), proto.message(_NORMALIZER, *normalizer)))


def _head(length: int, rest: int) -> bytes:
    """Return what precedes a piece's text of this length in bytes, if `rest` more bytes follow the text.

    The piece has no type, so it has the usual one.
    """
    text = proto.head(_TEXT, length)
    return proto.head(_PIECES, len(text) + length + rest) + text
