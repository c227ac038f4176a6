"""Embedding: turns texts into unit vectors, float32[n, d], with a model on this machine or of a service."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from schemas.errors import EmbeddingUnavailable
from schemas.settings import EmbeddingSettings
from streams.models.embedding.embedders import Model, Side, Vectors
from streams.models.embedding.process import EmbeddingProcess
from streams.models.embedding.question_vectors import QuestionVectors
from streams.runtime.backoff import Backoff

__all__ = ["Embedding", "Model", "Side", "Vectors"]

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The number of characters at the beginning of a text that are embedded. The rest of a text usually has only details,
#: and BM25 uses the whole text.
EMBEDDED_CHARS = 800
#: Maximum time that a question waits for its vector (seconds). It must be shorter than the time within which the API
#: has to answer, `streams.shards.user_shards.WAIT_SECONDS`.
QUESTION_SECONDS = 8.0
#: Maximum bytes of the cache for vectors of window exchanges. This is enough for 7,000 vectors of 512 numbers.
SAID_BYTES = 16_000_000
#: Maximum number of attempts to load the model, and to embed a question or window exchanges.
ATTEMPTS = 3
BACKOFF = Backoff(first=0.5, longest=30.0)
#: Seconds between two log lines while embedding fails.
REMINDER_SECONDS = 60.0


class Backend(Protocol):
    """Turns texts into vectors. The texts are not blank, and not longer than `EMBEDDED_CHARS`, without a prefix.

    A prefix for questions or documents is added by the backend, so a cut never removes it. A backend whose model does
    not distinguish the two ignores `of`. At most `simultaneous` batches of one caller are embedded at a time.
    """

    simultaneous: int

    async def load(self) -> Model:
        """Load the model, and return its description. Raises `SiltstoneError`."""

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        """Return unit vectors of one batch. Raises `EmbeddingUnavailable` if the batch may be tried again.

        `attempt` is the number of this attempt, from 1. An `urgent` batch overtakes waiting batches.
        """

    async def close(self) -> None:
        """Release connections and processes."""


class Embedding:
    """The embedding model of the settings (`Settings.embedder()`). It loads in the background.

        embedding.start()
        await embedding.embed(["where do I live?"], of="question")   # soon, or `EmbeddingUnavailable`
        await embedding.embed(texts, of="document")                  # must not be lost: waits until it succeeds
        await embedding.stop()

    A blank text gets a vector of zeros with every backend, so it is similar to no other text. The vectors of the last
    questions are cached. A repeated question gets its vector immediately, even while embedding fails.
    """

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._batch_size = settings.batch_size
        self._backend = _backend(settings)
        self._outage = _Outage()
        self._questions, self._said = QuestionVectors(), QuestionVectors(SAID_BYTES)
        self._loaded: asyncio.Future[Model] | None = None

    def start(self) -> None:
        """Start loading the model."""
        self._loaded = asyncio.ensure_future(self._insisting(self._load, ATTEMPTS))
        self._loaded.add_done_callback(lambda done: None if done.cancelled() else done.exception())

    @property
    def ready(self) -> bool:
        loaded = self._loaded
        return loaded is not None and loaded.done() and not loaded.cancelled() and loaded.exception() is None

    @property
    def trouble(self) -> str:
        """The reason why embedding fails at present; empty if it does not fail."""
        return self._outage.reason

    async def model(self) -> Model:
        """Wait until the model is loaded, and return its description. If loading failed, raises its error."""
        assert self._loaded is not None, "start() comes first"
        return await asyncio.shield(self._loaded)

    async def embed(self, texts: Sequence[str], of: Side) -> Vectors:
        """Return the unit vectors of texts, float32[n, d]; no texts give float32[0, d].

        Compare a question with documents, and documents with each other. Questions are not comparable with each
        other: a model may have learnt only which documents answer them.

        If a question cannot be embedded, raises `EmbeddingUnavailable` within `QUESTION_SECONDS`. Documents wait
        without a limit until embedding succeeds. Until then, their records must stay unacknowledged.
        """
        if of == "document":
            return await self._embed(texts, of, math.inf)
        if (known := self._questions.of(texts)) is not None:
            return known
        vectors = await self._soon(texts, of)
        self._questions.keep(texts, vectors)
        return vectors

    async def embed_said(self, texts: Sequence[str]) -> Vectors:
        """Return the unit vectors, float32[n, d], of window exchanges that a search ranks. The vectors are cached.

        They are documents, like the memories that they may become.

        While embedding fails, texts without a cached vector get zeros. Searches then find them only by their words.
        """
        known = dict(zip(texts, self._said.known(texts), strict=True))
        new = [text for text, vector in known.items() if vector is None]
        if new:
            try:
                vectors = await self._soon(new, "document")
            except EmbeddingUnavailable:  # `_soon` has logged the failure
                vectors = np.zeros((len(new), (await self.model()).dimension), np.float32)
            self._said.keep(new, vectors)
            known.update(zip(new, vectors, strict=True))
        return np.array([known[text] for text in texts], np.float32)

    async def stop(self) -> None:
        """Cancel the loading of the model, and close the backend."""
        if self._loaded is not None:
            self._loaded.cancel()
        await self._backend.close()

    async def _soon(self, texts: Sequence[str], of: Side) -> Vectors:
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                return await self._embed(texts, of, 1 if self._outage.reason else ATTEMPTS)
        except EmbeddingUnavailable as exc:
            self._outage.goes_on(str(exc))
            raise
        except TimeoutError as exc:
            reason = self._outage.reason or "the embedding model is busy, or being started"
            raise EmbeddingUnavailable(f"{reason}; ask again") from exc

    async def _load(self, attempt: int) -> Model:
        return await self._backend.load()

    async def _embed(self, texts: Sequence[str], of: Side, attempts: float) -> Vectors:
        model = await self.model()
        urgent = not math.isinf(attempts)
        vectors = np.zeros((len(texts), model.dimension), np.float32)
        places = asyncio.Semaphore(self._backend.simultaneous)
        said = [row for row, text in enumerate(texts) if text[:EMBEDDED_CHARS].strip()]

        async def fill(rows: list[int]) -> None:
            part = [_embeddable(texts[row]) for row in rows]
            async with places:
                vectors[rows] = await self._insisting(
                    lambda attempt: self._backend.embed(part, of, attempt, urgent=urgent), attempts
                )

        size = self._batch_size
        if len(said) <= size:  # without a task, because each step of a task takes milliseconds in a busy event loop
            if said:
                await fill(said)
            return vectors
        tasks = [asyncio.ensure_future(fill(said[start : start + size])) for start in range(0, len(said), size)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return vectors

    async def _insisting(self, ask: Callable[[int], Awaitable[T]], attempts: float) -> T:
        """Call `ask` with the number of the attempt, from 1, until it succeeds or has failed `attempts` times.

        Return the result of `ask`, or raise its last error. An error that is not temporary is raised immediately,
        unless `attempts` is infinite.
        """
        attempt = 1
        while True:
            try:
                answer = await ask(attempt)
            except EmbeddingUnavailable as exc:
                if attempt >= attempts or not (exc.passing or math.isinf(attempts)):
                    raise
                self._outage.goes_on(str(exc))
                await asyncio.sleep(max(BACKOFF.after(attempt), exc.retry_after))
                attempt += 1
            else:
                self._outage.is_over()
                return answer


class _Outage:
    """Logs an outage of the embedding model: its beginning, a reminder every `REMINDER_SECONDS`, and its end."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._since = self._said_at = 0.0
        #: The reason of the present outage; empty if there is none.
        self.reason = ""

    def goes_on(self, reason: str) -> None:
        now = self._monotonic()
        if not self.reason:
            self._since = now
        if not self.reason or now - self._said_at >= REMINDER_SECONDS:
            log.warning("nothing is embedded for now: %s. The worker tries again; new memories wait", reason)
            self._said_at = now
        self.reason = reason

    def is_over(self) -> None:
        if self.reason:
            log.info("embedding goes on after %.0f s", self._monotonic() - self._since)
            self.reason = ""


def _backend(settings: EmbeddingSettings) -> Backend:
    if settings.backend == "openai":
        # Imported only if needed, because the import takes most of a second, and most workers do not use a service.
        from streams.models.embedding.service import EmbeddingService

        return EmbeddingService(settings)
    return EmbeddingProcess(settings)


def _embeddable(text: str) -> str:
    """Return the part of a text to embed. Lone surrogates, which are not valid text, become question marks."""
    return text[:EMBEDDED_CHARS].encode("utf-8", "replace").decode("utf-8")
