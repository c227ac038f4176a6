"""A local cross-encoder in a separate process, which is restarted if it dies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from schemas.errors import SiltstoneError
from streams.models.local_models import library_model, model_process
from streams.models.reranking.backends import HARMLESS, NotScored
from streams.runtime.backoff import Backoff
from streams.runtime.called_process import ProcessDied

#: The pauses before the model is loaded again, after it could not be loaded or its process has died.
BACKOFF = Backoff(first=1.0, longest=300.0)
_LOADING = "the reranker is being loaded"


class RerankProcess:
    """The cross-encoder of the settings, in a process like the embedding model's, but another one.

    A question's vector is then never behind a reranking, which takes longer. The process gets one call at a time. A
    caller that gives up before its call begins is left out, so that late calls do not accumulate.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._process = model_process("reranking")
        self._place = asyncio.Semaphore(1)
        self._waiting: NotScored | None = NotScored(_LOADING, late=True)
        self._failures = 0
        self._loading: asyncio.Task[None] | None = None
        self._closed = False

    def start(self) -> None:
        """Start loading the model. A failure is repeated later, because the model hub may have been away."""
        self._loading = asyncio.ensure_future(self._load())

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score the texts. Raises `NotScored` at once if the model is not loaded."""
        self._check()
        await self._place.acquire()
        # Also if the caller gives up, the place is taken until the process has finished the call.
        asked = asyncio.ensure_future(self._asked(question, texts))
        asked.add_done_callback(lambda _: self._place.release())
        return await asyncio.shield(asked)

    async def close(self) -> None:
        """End the process."""
        self._closed = True
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        await self._process.close()

    def _check(self) -> None:
        if self._waiting is not None:
            raise NotScored(str(self._waiting), late=self._waiting.late)

    async def _asked(self, question: str, texts: Sequence[str]) -> list[float]:
        self._check()  # the process may have died while this call waited
        try:
            found = await self._process.call(_scores, question, texts)
        except ProcessDied as exc:
            self._waiting = NotScored(f"the reranker's process {exc}; it is started again")
            self._failures += 1
            if not self._closed:
                self.start()
            raise NotScored(str(self._waiting)) from exc
        except SiltstoneError as exc:
            raise NotScored(str(exc)) from exc
        self._failures = 0
        return found

    async def _load(self) -> None:
        while True:
            if self._failures:
                await self._process.close()
                await asyncio.sleep(BACKOFF.after(self._failures))
                self._process = model_process("reranking")
            try:
                await self._process.call(_load_model, self._model)
            except SiltstoneError as exc:
                self._waiting = NotScored(str(exc))
            except ProcessDied as exc:
                self._waiting = NotScored(
                    f"the reranker's process {exc} while it loaded the model; give it more memory"
                )
            else:
                self._waiting = None
                return
            self._failures += 1


def cross_encoder(model: str) -> Any:
    """Load a cross-encoder, and score two texts with it. Raises `SiltstoneError`."""
    loaded = library_model("CrossEncoder", model, "rerank")
    question, texts = HARMLESS
    try:
        scored = predicted(loaded, question, texts)
    except Exception as exc:
        raise SiltstoneError(
            f"rerank.model {model} is no reranker: it does not score ({type(exc).__name__})"
        ) from None
    if len(scored) != len(texts):
        raise SiltstoneError(f"rerank.model {model} is no reranker: it gives no single score for a text")
    return loaded


_in_process: list[Any] = []
"""The loaded model, as a list of one, in the process that `RerankProcess` starts; empty in all other processes."""


def _load_model(model: str) -> None:
    _in_process.append(cross_encoder(model))


def _scores(question: str, texts: Sequence[str]) -> list[float]:
    """Score the texts. Runs in the child process.

    Exceptions of the model's library are replaced, because it may be impossible to send them to the parent process,
    and because they may quote users' texts.
    """
    try:
        return predicted(_in_process[0], question, texts)
    except Exception as exc:
        raise SiltstoneError(f"the reranker cannot score {len(texts)} texts: {type(exc).__name__}") from None


def predicted(model: Any, question: str, texts: Sequence[str]) -> list[float]:
    """Return the scores of a loaded cross-encoder; none if it gives several for a text, as classifiers do."""
    scores = model.predict([(question, text) for text in texts], show_progress_bar=False)
    if scores.ndim != 1:
        return []
    return [float(score) for score in scores]
