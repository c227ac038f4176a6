"""Only what may be over when asked again is 503 with `Retry-After`."""

from __future__ import annotations

from pathlib import Path

import aiokafka.errors
import httpx
import pytest
from fastapi import FastAPI

from schemas.errors import (
    BrokerUnavailable,
    DataDirError,
    EmbeddingMismatch,
    EmbeddingUnavailable,
    NotReady,
    ShardLocked,
    SummaryFilesError,
)
from streams.doors.http.failures import answer_failures, answer_to


@pytest.mark.parametrize(
    ("exc", "status", "again"),
    [
        (TimeoutError(), 503, True),
        (BrokerUnavailable("localhost:9092"), 503, True),
        (NotReady("partitions are moving"), 503, True),
        (ShardLocked(1, "another process has it"), 503, True),
        (EmbeddingUnavailable("it does not answer"), 503, True),
        (EmbeddingUnavailable("the key is wrong", passing=False), 503, False),
        (aiokafka.errors.NotEnoughReplicasError(), 503, True),
        (aiokafka.errors.KafkaConnectionError(), 503, True),
        (aiokafka.errors.MessageSizeTooLargeError(), 413, False),
        (aiokafka.errors.TopicAuthorizationFailedError(), 500, False),
        (SummaryFilesError("summaries cannot be read", []), 500, False),
        (DataDirError(Path("data"), "read-only file system"), 500, False),
        (EmbeddingMismatch(0, "it was written with another model"), 500, False),
        (ZeroDivisionError(), 500, False),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Exception) else None,
)
def test_what_passes_may_be_asked_again_and_nothing_else(exc: Exception, status: int, again: bool) -> None:
    answer = answer_to(exc)
    assert (answer.status_code, "retry-after" in answer.headers) == (status, again)


async def test_what_nobody_foresaw_is_answered_as_json_without_its_text() -> None:
    """It may quote what was said."""
    api = FastAPI()
    answer_failures(api)

    @api.get("/")
    async def fails() -> None:
        raise ValueError("my secret")

    transport = httpx.ASGITransport(app=api, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://worker") as client:
        answer = await client.get("/")
    assert (answer.status_code, answer.json()) == (500, {"detail": "ValueError: the worker's log says more"})
