"""Reranking by a service: the request `/rerank` of Cohere, Jina AI, Voyage AI and most servers of open models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import orjson
from openai import APIStatusError

from schemas.settings import RerankSettings
from streams.models.openai_client import connected
from streams.models.reranking.backends import NotScored

_ADVICE: Final = {
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
        self._client = connected(settings.api_key, settings.base_url)
        address = urlsplit(settings.base_url)
        #: The model and the service's host, for error texts.
        self.where = f"{settings.model} at {address.scheme}://{address.netloc}"

    def start(self) -> None:
        """Do nothing: the service has loaded the model."""

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score the texts by one request. Raises `NotScored`; the caller limits the time."""
        body = {"model": self._model, "query": question, "documents": list(texts)}
        try:
            answer = await self._client.post("/rerank", body=body, cast_to=httpx.Response)
            return scores_in(answer.content, len(texts))
        except _Unusable as exc:
            raise NotScored(f"{self.where} does not rerank: {exc}; check the service and rerank.base_url") from exc
        except Exception as exc:
            raise self._failure(exc) from exc

    async def close(self) -> None:
        await self._client.close()

    def _failure(self, exc: Exception) -> NotScored:
        name = type(exc).__name__
        what = f"{name}, {exc.status_code}" if isinstance(exc, APIStatusError) else name
        return NotScored(f"{self.where} does not rerank ({what}): {_ADVICE.get(name, 'check the service')}")


def scores_in(body: bytes, count: int) -> list[float]:
    """Return the scores in a service's answer, sorted by `index`. Raises `_Unusable`.

    The list is `results`, or `data` (Voyage AI). Its order means nothing here.
    """
    try:
        answer = orjson.loads(body)
        rows = answer["results"] if "results" in answer else answer["data"]
        numbered = {_index(row["index"]): _number(row["relevance_score"]) for row in rows}
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
