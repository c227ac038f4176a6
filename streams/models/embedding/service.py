"""Embedding by an OpenAI-compatible service. Each batch of texts is one request, and each answer is checked."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
import orjson
from openai import APIStatusError, omit

from schemas.errors import EmbeddingUnavailable
from schemas.settings import EmbeddingSettings
from streams.models.embedding import calibration
from streams.models.embedding.embedders import Model, Side, Vectors, name_with, unit
from streams.models.openai_client import connected, retry_after

log = logging.getLogger(__name__)

#: A text that is sent after a failure, to find out whether the service or the other texts are the reason.
HARMLESS = "harmless"
#: The number of the attempt from which on a server error may be caused by the texts. Before, it counts as temporary.
DOUBTFUL_ATTEMPT = 5
#: A refused text is halved until it is accepted, or until it has fewer characters than this.
SHORTEST = 16

_REFUSED = frozenset({400, 413, 422})
#: By the HTTP status, or else by the name of the exception: the client has no exception for the status 413.
_ADVICE: Final[dict[int | str, str]] = {
    413: "lower embedding.batch_size",
    "AuthenticationError": "correct the key",
    "PermissionDeniedError": "give the key access to this model, or set another embedding.model",
    "NotFoundError": "correct the URL or embedding.model",
    "BadRequestError": "set another embedding.model, lower embedding.batch_size, or leave out embedding.dimensions "
    "and the input types",
    "UnprocessableEntityError": "lower embedding.batch_size, or set another embedding.model",
    "RateLimitError": "raise the service's limit, or pay its bill",
    "APIConnectionError": "start the service, or correct its URL",
    "TimeoutError": "check the service, or raise embedding.timeout_seconds",
}
#: Failures that are not temporary, so that another attempt would also fail.
_LASTING = frozenset({"AuthenticationError", "PermissionDeniedError", "NotFoundError"})


class _Unusable(Exception):
    """The answer of the service cannot be used. The message quotes nothing from the answer.

    `refused` is true if the texts are the likely reason.
    """

    def __init__(self, message: str, *, refused: bool = False) -> None:
        self.refused = refused
        super().__init__(message)


class _AtFault(EmbeddingUnavailable):
    """The service answered, but did not embed the texts. `refused` is true if another attempt would also fail."""

    def __init__(self, message: str, *, refused: bool) -> None:
        self.refused = refused
        super().__init__(message, passing=not refused)


class EmbeddingService:
    """An embedding model of an OpenAI-compatible service. It needs no process, because the worker computes little.

    Texts are sent only to `base_url`. An error names the host and the failure. It never contains the key, the path of
    the URL (some services have the key in it), or the text of another exception, which may quote messages.
    """

    #: Maximum number of batches of one caller at a time.
    simultaneous = 4

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._settings = settings
        self._client = connected(settings.api_key, settings.base_url)
        self._dimension: int | None = None
        #: For each side, the prefix of its texts, and the parameters of its requests in addition to OpenAI's.
        self._told: dict[Side, tuple[str, dict[str, str]]] = {
            "question": (settings.query_prefix or "", _parameters(settings, settings.query_input_type)),
            "document": (settings.document_prefix or "", _parameters(settings, settings.document_input_type)),
        }
        address = urlsplit(settings.base_url)
        self._where = f"{settings.model} at {address.scheme}://{address.netloc}"

    async def load(self) -> Model:
        """Embed the sample texts, to find out the model's dimension and scales. Raises `EmbeddingUnavailable`."""
        questions = await self._in_batches(calibration.questions(), "question")
        documents = await self._in_batches(calibration.documents(), "document")
        prefix, parameters = self._told["document"]
        told = {"document_prefix": prefix} if prefix else {}
        return Model(
            name_with(self._settings.model, told | parameters),
            documents.shape[1],
            calibration.scales(questions, documents),
            asymmetric=self._told["question"] != self._told["document"],
        )

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        """Return unit vectors, float32[n, d]. Raises `EmbeddingUnavailable`. `attempt` counts from 1.

        `urgent` has no effect, because no request waits for another request.

        If the service embeds other texts, but not these, find the texts that it refuses, and shorten them. Otherwise
        one text that is too long for the model would block the whole batch for ever.
        """
        try:
            return await self._ask(texts, of)
        except _AtFault as exc:
            if not exc.refused and attempt < DOUBTFUL_ATTEMPT:
                raise
        await self._ask([HARMLESS], of)  # raises if the service is the reason, not the texts
        return await self._in_halves(texts, of)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _in_batches(self, texts: Sequence[str], of: Side) -> Vectors:
        size = self._settings.batch_size
        return np.concatenate([await self._ask(texts[at : at + size], of) for at in range(0, len(texts), size)])

    async def _in_halves(self, texts: Sequence[str], of: Side) -> Vectors:
        if len(texts) == 1:
            return await self._shortened(texts[0], of)
        middle = len(texts) // 2
        parts = []
        for part in (texts[:middle], texts[middle:]):
            try:
                parts.append(await self._ask(part, of))
            except _AtFault:
                parts.append(await self._in_halves(part, of))
        return np.concatenate(parts)

    async def _shortened(self, text: str, of: Side) -> Vectors:
        """Halve a text until the service accepts it, and return the vector of the accepted part, float32[1, d].

        If the service accepts no part, return zeros. A search can then find the text's memory only by BM25.
        """
        length = len(text) // 2
        while length >= SHORTEST and text[:length].strip():
            try:
                return await self._ask([text[:length]], of)
            except _AtFault:
                length //= 2
        log.warning("%s refuses a text of %d characters, also shortened: it gets no vector", self._where, len(text))
        assert self._dimension is not None, "another text was embedded"
        return np.zeros((1, self._dimension), np.float32)

    async def _ask(self, texts: Sequence[str], of: Side) -> Vectors:
        """Embed texts by one request. The time-out limits the whole request, including the answer."""
        settings, (prefix, parameters) = self._settings, self._told[of]
        try:
            async with asyncio.timeout(settings.timeout_seconds):
                answer = await self._client.embeddings.with_raw_response.create(
                    model=settings.model,
                    input=[prefix + text for text in texts],
                    # A quarter of the size of JSON numbers. A service without base64 answers with lists of numbers.
                    encoding_format="base64",
                    dimensions=omit if settings.dimensions is None else settings.dimensions,
                    extra_body=parameters or None,
                )
            vectors = vectors_in(answer.content, len(texts), self._dimension or settings.dimensions)
        except _Unusable as exc:
            message = f"{self._where} does not embed: {exc}; check the service and embedding.model"
            raise _AtFault(message, refused=exc.refused) from exc
        except Exception as exc:
            raise self._failure(exc) from exc
        self._dimension = vectors.shape[1]
        return vectors

    def _failure(self, exc: Exception) -> EmbeddingUnavailable:
        name = type(exc).__name__
        advice = _ADVICE.get(name, "check the service")
        if not isinstance(exc, APIStatusError):
            return EmbeddingUnavailable(f"{self._where} does not embed ({name}): {advice}")
        status = exc.status_code
        advice = _ADVICE.get(status, advice)
        message = f"{self._where} does not embed ({name}, {status}): {advice}"
        if status in _REFUSED or status == 500:
            return _AtFault(message, refused=status in _REFUSED)
        pause = retry_after(exc.response.headers)
        return EmbeddingUnavailable(message, passing=name not in _LASTING, retry_after=pause)


def _parameters(settings: EmbeddingSettings, input_type: str | None) -> dict[str, str]:
    return {settings.input_type_name: input_type} if input_type else {}


def vectors_in(body: bytes, count: int, dimension: int | None) -> Vectors:
    """Return the unit vectors in a service's answer, float32[count, d], sorted by `index`. Raises `_Unusable`."""
    try:
        rows = orjson.loads(body)["data"]
        with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite, which is checked below
            numbered = {row.get("index", place): _numbers(row["embedding"]) for place, row in enumerate(rows)}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as exc:
        raise _Unusable("its answer is not a list of embeddings") from exc
    if numbered.keys() != set(range(count)) or len(rows) != count:
        raise _Unusable(f"it gave {len(rows)} vectors for {count} texts, or numbered them wrongly")
    found = [numbered[place] for place in range(count)]
    sizes = {len(numbers) for numbers in found}
    if len(sizes) != 1 or sizes == {0}:
        raise _Unusable("its vectors are empty or differ in size")
    if dimension is not None and sizes != {dimension}:
        raise _Unusable(f"its vectors have {sizes.pop()} dimensions, not {dimension}")
    matrix = np.stack(found)
    if not np.isfinite(matrix).all():
        raise _Unusable("its vectors are not finite", refused=True)
    return unit(matrix)


def _numbers(embedding: Any) -> Vectors:
    """Return one vector, float32[d], from base64 of little-endian float32, or from a list of numbers.

    Raises ValueError or TypeError.
    """
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float32)
    numbers = np.asarray(embedding, np.float32)
    if numbers.ndim != 1:
        raise ValueError(f"an array of {numbers.ndim} dimensions")
    return numbers
