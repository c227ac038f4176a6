"""Reranking by a service: the request `/rerank` of Cohere, Jina AI, Voyage AI and most servers of open models.

Hugging Face's Text Embeddings Inference has a request of its own at the same path: `texts` instead of `documents`.
Its answer is a list of `score`. It is recognized by its refusal of the usual request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import orjson
from openai import APIStatusError, UnprocessableEntityError

from schemas.settings import RerankSettings
from streams.models.openai_client import connected
from streams.models.reranking.backends import NotScored

#: By the HTTP status, or else by the name of the exception: the client has no exception for the status 413.
_ADVICE: Final[dict[int | str, str]] = {
    413: "lower rerank.candidates, or raise the service's limit",
    "AuthenticationError": "correct the key",
    "PermissionDeniedError": "give the key access to this model, or set another rerank.model",
    "NotFoundError": "correct rerank.base_url or rerank.model",
    "BadRequestError": "set another rerank.model, or lower rerank.candidates",
    "UnprocessableEntityError": "set another rerank.model, or another service: this one has another kind of request",
    "RateLimitError": "raise the service's limit, or pay its bill",
    "APIConnectionError": "start the service, or correct its URL",
}


class _Unusable(Exception):
    """The answer of the service cannot be used. The message quotes nothing from the answer."""


class RerankService:
    """A reranker of a service. Its requests have no `top_n`: all scores are needed, and Voyage AI refuses it.

    Texts are sent only to `base_url`. An error names the host and the failure. It never contains the key, the path of
    the URL (some services have the key in it), or the text of another exception, which may quote messages.
    """

    def __init__(self, settings: RerankSettings) -> None:
        self._model = settings.model
        self._request = self._usual
        self._client = connected(settings.api_key, settings.base_url)
        address = urlsplit(settings.base_url)
        #: The model and the service's host, for error texts.
        self.where = f"{settings.model} at {address.scheme}://{address.netloc}"

    def start(self) -> None:
        """Do nothing: the service has loaded the model."""

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score the texts by one request. Raises `NotScored`; the caller limits the time."""
        try:
            answer = await self._answer(question, list(texts))
            return scores_in(answer.content, len(texts))
        except _Unusable as exc:
            raise NotScored(f"{self.where} does not rerank: {exc}; check the service and rerank.base_url") from exc
        except Exception as exc:
            raise self._failure(exc) from exc

    async def close(self) -> None:
        await self._client.close()

    async def _answer(self, question: str, texts: list[str]) -> httpx.Response:
        """Ask the service. If it refuses the usual request because `texts` are missing, send those from now on."""
        try:
            return await self._post(self._request(question, texts))
        except UnprocessableEntityError as exc:
            if self._request == self._of_text_embeddings_inference or "texts" not in exc.response.text:
                raise
        answer = await self._post(self._of_text_embeddings_inference(question, texts))
        self._request = self._of_text_embeddings_inference
        return answer

    async def _post(self, body: dict[str, Any]) -> httpx.Response:
        return await self._client.post("/rerank", body=body, cast_to=httpx.Response)

    def _usual(self, question: str, texts: list[str]) -> dict[str, Any]:
        return {"model": self._model, "query": question, "documents": texts}

    @staticmethod
    def _of_text_embeddings_inference(question: str, texts: list[str]) -> dict[str, Any]:
        """A server has one model. Without `truncate`, it may refuse texts that are longer than the model reads."""
        return {"query": question, "texts": texts, "truncate": True}

    def _failure(self, exc: Exception) -> NotScored:
        name = what = type(exc).__name__
        advice = _ADVICE.get(name, "check the service")
        if isinstance(exc, APIStatusError):
            what, advice = f"{name}, {exc.status_code}", _ADVICE.get(exc.status_code, advice)
        return NotScored(f"{self.where} does not rerank ({what}): {advice}")


def scores_in(body: bytes, count: int) -> list[float]:
    """Return the scores in a service's answer, sorted by `index`. Raises `_Unusable`.

    The list is `results`, or `data` (Voyage AI), or the whole answer, with `score` instead of `relevance_score` (Text
    Embeddings Inference). Its order means nothing here.
    """
    try:
        answer = orjson.loads(body)
        if isinstance(answer, list):
            rows, score = answer, "score"
        else:
            rows, score = answer["results"] if "results" in answer else answer["data"], "relevance_score"
        numbered = {_index(row["index"]): _number(row[score]) for row in rows}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as exc:
        raise _Unusable("its answer is not a list of scores") from exc
    if numbered.keys() != set(range(count)) or len(rows) != count:
        raise _Unusable(f"it gave {len(rows)} scores for {count} texts, or numbered them wrongly")
    return [numbered[place] for place in range(count)]


def _index(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"an index of type {type(value).__name__}")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"a score of type {type(value).__name__}")
    return float(value)
