"""The reranker: scores in time or none, and a search never fails because of it. The HTTP is real."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable

import orjson
import pytest
from pydantic import SecretStr

from schemas.settings import RerankSettings
from streams.models.reranking.reranker import REMINDER_SECONDS, SCORED_CHARS, Reranker
from streams.telemetry.metrics import Metrics, labelled
from tests.support.openai_server import Answer, OpenAIServer, Received, scored

KEY = "sk-secret-0123456789"
QUESTION = "Where does Ann live?"
TEXTS = ["The weather was fine", "Ann does live in Oslo", "Ann likes chess"]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def reranker(server: OpenAIServer, metrics: Metrics) -> Reranker:
    return made(server, metrics)


def made(
    server: OpenAIServer, metrics: Metrics, monotonic: Callable[[], float] = lambda: 0.0, **fields: object
) -> Reranker:
    settings = {"backend": "service", "model": "judge-1", "api_key": SecretStr(KEY), "base_url": server.base_url}
    reranker = Reranker(
        RerankSettings.model_validate({**settings, "timeout_seconds": 8, **fields}), metrics, monotonic
    )
    reranker.start()
    return reranker


def soon() -> float:
    """By the event loop's clock."""
    return asyncio.get_running_loop().time() + 0.05


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_each_text_has_its_score_whatever_the_order_of_the_answer(
    reranker: Reranker, server: OpenAIServer, metrics: Metrics
) -> None:
    """The request is what these services have in common; nothing else is in it."""
    assert await reranker.scores(QUESTION, TEXTS) == [0.0, 3.0, 1.0]
    (request,) = server.received
    assert (request.method, request.path, request.key) == ("POST", "/v1/rerank", KEY)
    assert request.body == {"model": "judge-1", "query": QUESTION, "documents": TEXTS}
    assert labelled(metrics.rerank) == {("done",): 1}
    await reranker.stop()


async def test_nothing_is_asked_about_no_texts(reranker: Reranker, server: OpenAIServer, metrics: Metrics) -> None:
    assert await reranker.scores(QUESTION, []) == []
    assert not server.received
    assert labelled(metrics.rerank) == {}
    await reranker.stop()


async def test_long_texts_are_their_beginning_and_odd_ones_are_text(reranker: Reranker, server: OpenAIServer) -> None:
    texts = ["x" * 9_000, "half \ud83d of a sign", "请记住 🙂"]
    assert await reranker.scores("y" * 9_000, texts) == [0.0, 0.0, 0.0]
    (request,) = server.received
    assert request.documents == ["x" * SCORED_CHARS, "half ? of a sign", "请记住 🙂"]
    assert request.body["query"] == "y" * SCORED_CHARS
    await reranker.stop()


@pytest.mark.parametrize("name", ["results", "data"])
async def test_voyages_answer_is_read_too(reranker: Reranker, server: OpenAIServer, name: str) -> None:
    server.script(Answer(body=scored([0.1, 3, -2.5], name=name)))
    assert await reranker.scores(QUESTION, TEXTS) == [0.1, 3.0, -2.5]
    await reranker.stop()


#: What Text Embeddings Inference says to a request with `documents`; an error may quote what was sent.
REFUSAL = b"Failed to deserialize the JSON body into the target type: missing field `texts` at line 1 column 57"


def as_text_embeddings_inference(request: Received) -> Answer:
    if "texts" not in request.body:
        return Answer(status=422, headers={"content-type": "text/plain"}, body=REFUSAL)
    scores = [{"index": place, "score": 0.5 - place} for place in range(len(request.body["texts"]))]
    return Answer(body=orjson.dumps(scores[::-1]))


async def test_text_embeddings_inference_is_recognized_by_its_refusal(
    reranker: Reranker, server: OpenAIServer, metrics: Metrics
) -> None:
    """Once: later searches send its request at once."""
    server.answering = as_text_embeddings_inference
    for _ in range(2):
        assert await reranker.scores(QUESTION, TEXTS) == [0.5, -0.5, -1.5]
    assert [sorted(request.body) for request in server.received] == [
        ["documents", "model", "query"],
        ["query", "texts", "truncate"],
        ["query", "texts", "truncate"],
    ]
    assert {(request.path, request.key) for request in server.received} == {("/v1/rerank", KEY)}
    assert server.received[-1].body == {"query": QUESTION, "texts": TEXTS, "truncate": True}
    assert labelled(metrics.rerank) == {("done",): 2}
    await reranker.stop()


async def test_what_refuses_both_requests_has_failed(
    reranker: Reranker, server: OpenAIServer, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    """And is asked as usual again: it may be another service tomorrow."""
    server.answering = lambda _: Answer(status=422, body=REFUSAL)
    assert await reranker.scores(QUESTION, TEXTS) is None
    assert len(server.received) == 2
    assert labelled(metrics.rerank) == {("failed",): 1}
    assert "(UnprocessableEntityError, 422)" in warnings(caplog)[0]
    server.answering = lambda _: Answer()
    assert await reranker.scores(QUESTION, TEXTS) == [0.0, 3.0, 1.0]
    await reranker.stop()


ODD: dict[str, bytes] = {
    "no JSON": b"<html>",
    "no list": b'{"results": 5}',
    "a list that is too short": b'[{"index": 0, "score": 0.5}]',
    "a list of the usual scores": b'[{"index": 0, "relevance_score": 0.5}]',
    "no score": b'{"results": [{"index": 0}, {"index": 1}, {"index": 2}]}',
    "too few": scored([1.0, 2.0]),
    "too many": scored([1.0, 2.0, 3.0, 4.0]),
    "one twice": scored([1.0, 2.0, 3.0], [0, 1, 1]),
    "one twice, and each": scored([1.0, 2.0, 3.0, 4.0], [0, 1, 2, 2]),
    "beyond the texts": scored([1.0, 2.0, 3.0], [1, 2, 3]),
    "below them": scored([1.0, 2.0, 3.0], [-1, 0, 1]),
    "a place as text": scored([1.0, 2.0, 3.0], ["0", "1", "2"]),
    "a place that is true": scored([1.0, 2.0, 3.0], [0, True, 2]),
    "a score as text": scored(["0.5", "0.6", "0.7"], [0, 1, 2]),
    "a score that is true": scored([True, 0.6, 0.7], [0, 1, 2]),
    "no number": b'{"results": [{"index": 0, "relevance_score": null}]}',
    "too large": b'{"results": [%s]}'
    % b",".join(b'{"index": %d, "relevance_score": 1e999}' % place for place in range(3)),
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD.keys())
async def test_an_answer_that_is_not_one_score_for_each_text_is_none(
    reranker: Reranker, server: OpenAIServer, metrics: Metrics, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    server.answering = lambda _: Answer(body=body)
    assert await reranker.scores(QUESTION, TEXTS) is None
    assert labelled(metrics.rerank) == {("failed",): 1}
    (warning,) = warnings(caplog)
    assert warning.startswith("searches are not reranked for now: ")
    assert not any(secret in warning for secret in (KEY, QUESTION, *TEXTS))
    await reranker.stop()


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (Answer(status=401), "(AuthenticationError, 401): correct the key"),
        (Answer(status=404), "(NotFoundError, 404): correct rerank.base_url or rerank.model"),
        (Answer(status=413), "(APIStatusError, 413): lower rerank.candidates"),
        (Answer(status=422), "(UnprocessableEntityError, 422): set another rerank.model, or another service"),
        (Answer(status=429), "(RateLimitError, 429): raise the service's limit"),
        (Answer(status=503), "(InternalServerError, 503): check the service"),
        (Answer(fault="broken"), "(APIConnectionError): start the service, or correct its URL"),
    ],
    ids=lambda given: str(given.status) + given.fault if isinstance(given, Answer) else "",
)
async def test_a_failure_says_what_to_do_without_key_or_texts(
    reranker: Reranker,
    server: OpenAIServer,
    metrics: Metrics,
    caplog: pytest.LogCaptureFixture,
    answer: Answer,
    what: str,
) -> None:
    """The service's error quotes both. One request is made: a search has no time for a second one."""
    server.answering = lambda _: answer
    assert await reranker.scores(QUESTION, TEXTS) is None
    assert labelled(metrics.rerank) == {("failed",): 1}
    (warning,) = warnings(caplog)
    assert f"judge-1 at {server.origin} does not rerank {what}" in warning
    assert not any(secret in warning for secret in (KEY, QUESTION, *TEXTS, "/v1"))
    assert len(server.received) == 1
    await reranker.stop()


@pytest.mark.parametrize("endless", [False, True])
async def test_a_late_answer_is_none(
    server: OpenAIServer, metrics: Metrics, caplog: pytest.LogCaptureFixture, endless: bool
) -> None:
    """Also one whose bytes never end. The next one is asked for as before."""
    reranker = made(server, metrics, timeout_seconds=0.05)
    server.script(Answer(fault="endless") if endless else Answer(delay=60))
    assert await reranker.scores(QUESTION, TEXTS) is None
    assert labelled(metrics.rerank) == {("late",): 1}
    assert "the reranker took too long; lower rerank.candidates" in warnings(caplog)[0]
    await reranker.stop()


async def test_it_does_not_wait_beyond_the_end_that_it_is_given(server: OpenAIServer, metrics: Metrics) -> None:
    """A search that has used up its time is answered without it."""
    reranker = made(server, metrics)
    server.gate.clear()
    assert await reranker.scores(QUESTION, TEXTS, until=soon()) is None
    assert await reranker.scores(QUESTION, TEXTS, until=0.0) is None
    assert labelled(metrics.rerank) == {("late",): 2}
    server.gate.set()
    assert await reranker.scores(QUESTION, TEXTS, until=math.inf) == [0.0, 3.0, 1.0]
    await reranker.stop()


async def test_the_log_is_reminded_once_a_minute(
    server: OpenAIServer, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    """However often it fails and goes on meanwhile."""
    now = 100.0
    reranker = made(server, metrics, lambda: now)
    server.script(Answer(status=500), "fine", Answer(status=500), Answer(status=500))
    for _ in range(3):
        await reranker.scores(QUESTION, TEXTS)
    assert len(warnings(caplog)) == 1
    now += REMINDER_SECONDS
    await reranker.scores(QUESTION, TEXTS)
    assert len(warnings(caplog)) == 2
    assert labelled(metrics.rerank) == {("done",): 1, ("failed",): 3}
    await reranker.stop()
