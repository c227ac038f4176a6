"""A local embedding model in a separate process, which is restarted if it dies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from schemas.errors import SiltstoneError
from schemas.settings import ONE_MODEL, EmbeddingSettings
from streams.models.embedding.embedders import Embedder, Model, Side, Vectors, load_embedder, model_of
from streams.models.embedding.lanes import Lanes
from streams.models.local_models import model_process
from streams.runtime.called_process import CalledProcess, ProcessDied

log = logging.getLogger(__name__)


class EmbeddingProcess:
    """The local embedding model of the settings, in a separate process, so that it never blocks the event loop.

    In a thread, the model would take half of the interpreter's time from the worker. The process has the same
    priority as the worker. With a niceness of 10, it would get a ninth of the worker's share of a busy core. In a
    test beside two busy processes, a question then took 95 ms instead of 16 ms, and bulk texts took five times as
    long. Intake still goes first, because the long-term agent embeds less during a backlog
    (`streams/runtime/backlog_gate.py`), and because the process uses at most one core.
    """

    #: Maximum number of batches of one caller at a time. While the process computes one, the next one is ready.
    simultaneous = 2

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._settings = settings
        self._process = _process(settings)
        self._loaded: asyncio.Future[Model] | None = None
        self._asymmetric = False
        self._lanes = Lanes(self._ask, settings.batch_size)

    async def load(self) -> Model:
        """Load the model. Raises `SiltstoneError` if it cannot be loaded."""
        self._begin()
        assert self._loaded is not None
        try:
            model = await asyncio.shield(self._loaded)
        except ProcessDied as exc:
            raise SiltstoneError(
                "the embedding model's process died while it loaded the model, usually for lack of memory: "
                "give it more, or set a smaller embedding.model"
            ) from exc
        self._asymmetric = model.asymmetric
        return model

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        """Return unit vectors, float32[n, d]. If the process dies, the texts are given to a new process."""
        # A symmetric model gets texts of both sides in one call.
        return await self._lanes.embed(texts, of if self._asymmetric else "document", urgent=urgent)

    async def close(self) -> None:
        """End the process."""
        await self._lanes.close()
        await self._process.close()

    async def _ask(self, texts: list[str], of: Side) -> Vectors:
        """Embed texts in the process. If the process has died, replace it and raise `ProcessDied`."""
        process, loaded = self._process, self._loaded
        assert loaded is not None, "load() comes first"
        try:
            await asyncio.shield(loaded)
            return await process.call(_embed, texts, of)
        except ProcessDied:
            if process is self._process:  # this is the first caller that notices the death
                log.warning("the embedding model's process has died; it is started again")
                self._process = _process(self._settings)
                self._begin()
                await process.close()
            raise

    def _begin(self) -> None:
        self._loaded = asyncio.ensure_future(self._process.call(_load, self._settings))
        self._loaded.add_done_callback(lambda done: None if done.cancelled() else done.exception())


def _process(settings: EmbeddingSettings) -> CalledProcess:
    """Return a process that computes with one thread.

    For a transformer, environment variables can set the number of threads. `use` ignores these variables, because a
    second thread makes it no faster; `e5` always computes with one thread.
    """
    return model_process("embedding", kept={}) if settings.backend in ONE_MODEL else model_process("embedding")


_in_process: list[Embedder] = []
"""The loaded model, as a list of one, in the process that `EmbeddingProcess` starts; empty in all other processes."""


def _load(settings: EmbeddingSettings) -> Model:
    embedder = load_embedder(settings)
    _in_process.append(embedder)
    return model_of(embedder)


def _embed(texts: Sequence[str], of: Side) -> Vectors:
    """Embed the texts. Runs in the child process.

    Exceptions of the model's library are replaced, because it may be impossible to send them to the parent process,
    and because they may quote users' texts.
    """
    embedder = _in_process[0]
    try:
        return embedder.embed(texts, of)
    except Exception as exc:
        raise SiltstoneError(f"{embedder.name} cannot embed {len(texts)} texts: {type(exc).__name__}") from None
