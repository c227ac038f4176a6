"""Reranking: a model scores the best candidates of a search, each beside the question, to put them in order."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence

from schemas.settings import RerankSettings
from streams.models.reranking.backends import Backend, NotScored
from streams.models.reranking.process import RerankProcess
from streams.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

#: The number of characters at the beginning of a question or a text that are scored. Most models read 512 tokens.
SCORED_CHARS = 2_000
#: Seconds between two log lines while searches are not reranked.
REMINDER_SECONDS = 60.0


class Reranker:
    """The reranker of the settings (`Settings.reranker()`). It loads in the background, and never fails a search.

    reranker.start()
    await reranker.scores("where do I live?", texts)   # in time, or None: keep the order that the texts have
    await reranker.stop()
    """

    def __init__(
        self, settings: RerankSettings, metrics: Metrics, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        #: The number of best candidates to be scored.
        self.candidates = settings.candidates
        self._seconds, self._metrics, self._monotonic = settings.timeout_seconds, metrics, monotonic
        self._backend = _backend(settings)
        self._warned_at = -math.inf

    def start(self) -> None:
        """Start loading the model."""
        self._backend.start()

    async def scores(self, question: str, texts: Sequence[str], until: float = math.inf) -> list[float] | None:
        """Return one score for each text, in their order; a higher one is better.

        If there are no scores after `timeout_seconds`, or at the time `until` of the event loop's clock, return None.
        Also return None, and do not wait, if the model is not loaded, or fails.
        """
        if not texts:
            return []
        ends = min(asyncio.get_running_loop().time() + self._seconds, until)
        outcome = "done"
        try:
            async with asyncio.timeout_at(ends):
                found = await self._backend.scores(_scorable(question), [_scorable(text) for text in texts])
            if not all(map(math.isfinite, found)):
                raise NotScored("the reranker gave scores that are no numbers; set another rerank.model")
        except TimeoutError:
            outcome, why = "late", "the reranker took too long; lower rerank.candidates, or set a faster rerank.model"
        except NotScored as exc:
            outcome, why = "late" if exc.late else "failed", str(exc)
        self._metrics.rerank.labels(outcome).inc()
        if outcome == "done":
            return found
        self._warn(why)
        return None

    async def stop(self) -> None:
        """Close the backend."""
        await self._backend.close()

    def _warn(self, why: str) -> None:
        now = self._monotonic()
        if now - self._warned_at >= REMINDER_SECONDS:
            log.warning("searches are not reranked for now: %s", why)
            self._warned_at = now


def _backend(settings: RerankSettings) -> Backend:
    if settings.backend == "service":
        # Imported only if needed, because the import takes most of a second.
        from streams.models.reranking.service import RerankService

        return RerankService(settings)
    return RerankProcess(settings.model)


def _scorable(text: str) -> str:
    """Return the part of a text to score. Lone surrogates, which are not valid text, become question marks."""
    return text[:SCORED_CHARS].encode("utf-8", "replace").decode("utf-8")
