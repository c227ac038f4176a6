"""A local embedding model in a process of its own, which is started again when it dies."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from schemas.errors import SiltstoneError
from schemas.settings import EmbeddingSettings
from streams.clients.children import die_with_parent
from streams.clients.embedders import Embedder, Model, Vectors, load_embedder, model_of

log = logging.getLogger(__name__)

#: Embedding yields to intake where cores are short: what is promoted waits in its topic meanwhile.
EMBEDDING_NICE = 10
#: How many processes in a row may die of the same texts.
MOST_DEATHS = 3


class EmbeddingProcess:
    """The model of the settings, loaded by `load()`, in a process that never holds up the event loop.

    A thread would not do: tokenizing is Python and would take half of the worker's interpreter.
    """

    #: How many batches it can work on at a time.
    simultaneous = 1

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._settings = settings
        self._process = _process()
        self._loaded: asyncio.Future[Model] | None = None

    async def load(self) -> Model:
        """Raises `SiltstoneError` where it cannot be loaded."""
        self._begin()
        assert self._loaded is not None
        try:
            return await asyncio.shield(self._loaded)
        except BrokenProcessPool as exc:
            raise SiltstoneError(
                "the embedding model's process was ended while it was loaded, mostly for want of memory: "
                "give it more, or set a smaller embedding.model"
            ) from exc

    async def embed(self, texts: Sequence[str], attempt: int) -> Vectors:
        """Unit vectors, float32[n, d]. A process that dies is replaced, and asked again."""
        for _ in range(MOST_DEATHS):
            process, loaded = self._process, self._loaded
            assert loaded is not None, "load() comes first"
            try:
                await asyncio.shield(loaded)
                return await asyncio.get_running_loop().run_in_executor(process, _embed, texts)
            except BrokenProcessPool:
                if process is self._process:  # the first that noticed
                    log.warning("the embedding model's process was ended from outside; it is started again")
                    process.shutdown(wait=False)
                    self._process = _process()
                    self._begin()
        raise SiltstoneError(
            f"the embedding model's process was ended {MOST_DEATHS} times in a row, mostly for want of memory: "
            "give it more, or set a smaller embedding.model"
        )

    async def close(self) -> None:
        """End the process."""
        await asyncio.to_thread(self._process.shutdown, cancel_futures=True)

    def _begin(self) -> None:
        self._loaded = asyncio.get_running_loop().run_in_executor(self._process, _load, self._settings)
        self._loaded.add_done_callback(lambda done: None if done.cancelled() else done.exception())


def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


_in_process: list[Embedder] = []
"""The model, in the process that `EmbeddingProcess` started; empty in every other."""


def _load(settings: EmbeddingSettings) -> Model:
    die_with_parent()
    os.nice(EMBEDDING_NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the worker, which ends this process
    embedder = load_embedder(settings)
    _in_process.append(embedder)
    return model_of(embedder)


def _embed(texts: Sequence[str]) -> Vectors:
    """Other exceptions than ours may not get through the pipe, and may quote what was said."""
    embedder = _in_process[0]
    try:
        return embedder.embed(texts)
    except Exception as exc:
        raise SiltstoneError(f"{embedder.name} cannot embed {len(texts)} texts: {type(exc).__name__}") from None
