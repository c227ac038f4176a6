"""The embedding service, at the wire: what it receives, and what becomes of every answer and of every outage."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest
from pydantic import SecretStr

from schemas.errors import EmbeddingUnavailable, SiltstoneError
from schemas.settings import EmbeddingSettings
from streams.models.embedding import calibration, embedding
from streams.models.embedding.embedders import Vectors, unit
from streams.models.embedding.embedding import ATTEMPTS, REMINDER_SECONDS, Embedding, _Outage
from streams.runtime.backoff import Backoff
from tests.support.openai_server import DIMENSIONS, Answer, Answering, OpenAIServer, Received, embeddings, word_vector
from tests.support.waiting import until

KEY = "sk-secret-0123456789"
SAID = "I am allergic to peanuts"
HTML = Answer(body=b"<html>come back later</html>", headers={"content-type": "text/html"})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "BACKOFF", Backoff(first=0.01, longest=0.05))


def asking(base_url: str, **changes: object) -> Embedding:
    fields: dict[str, object] = {"backend": "openai", "api_key": KEY, "base_url": base_url, "model": "embedder-1"}
    return Embedding(EmbeddingSettings.model_validate(fields | changes))


@contextlib.asynccontextmanager
async def loaded(server: OpenAIServer, **changes: object) -> AsyncIterator[Embedding]:
    """An embedding whose model is loaded; what the service received for that is forgotten."""
    embedding = asking(server.base_url, **changes)
    embedding.start()
    try:
        await embedding.model()
        server.received.clear()
        yield embedding
    finally:
        await embedding.stop()


def vector(text: str, dimensions: int = DIMENSIONS) -> Vectors:
    (only,) = unit([word_vector(text, dimensions)])
    return np.asarray(only, np.float32)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def refusing(refused: Callable[[str], bool], status: int = 400) -> Answering:
    """A service that refuses a request with such a text in it."""
    return lambda request: Answer(status=status) if any(map(refused, request.texts)) else Answer()


# What the service receives


async def test_a_batch_is_one_request(server: OpenAIServer) -> None:
    """Below the base URL, with the key, to the model; dimensions only where they are set."""
    async with loaded(server) as embedding:
        await embedding.embed([SAID, "你好"], of="question")
    (request,) = server.received
    assert (request.method, request.path, request.key) == ("POST", "/v1/embeddings", KEY)
    assert request.body == {"model": "embedder-1", "input": [SAID, "你好"], "encoding_format": "base64"}


async def test_dimensions_are_asked_for_where_they_are_set(server: OpenAIServer) -> None:
    async with loaded(server, dimensions=8) as embedding:
        assert (await embedding.model()).dimension == 8
        np.testing.assert_allclose((await embedding.embed([SAID], of="question"))[0], vector(SAID, 8), atol=1e-5)
    assert server.received[0].body["dimensions"] == 8


async def test_many_texts_are_several_batches(server: OpenAIServer) -> None:
    async with loaded(server, batch_size=4) as embedding:
        vectors = await embedding.embed([f"text {i}" for i in range(10)], of="question")
    assert sorted(len(request.texts) for request in server.received) == [2, 4, 4]
    np.testing.assert_allclose(vectors, [vector(f"text {i}") for i in range(10)], atol=1e-5)


async def test_a_few_batches_are_under_way_at_a_time(server: OpenAIServer) -> None:
    async with loaded(server, batch_size=1) as embedding:
        server.gate.clear()
        asked = asyncio.create_task(embedding.embed([f"text {i}" for i in range(9)], of="document"))
        await until(lambda: server.under_way == 4)
        server.gate.set()
        await asked
    assert server.most_under_way == 4


async def test_a_blank_text_is_not_sent(server: OpenAIServer) -> None:
    """The service would refuse it."""
    async with loaded(server) as embedding:
        await embedding.embed(["", SAID, " \n"], of="question")
        await embedding.embed(["", " "], of="question")
    assert [request.texts for request in server.received] == [[SAID]]


async def test_nothing_of_the_environment_reaches_the_service(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", "sk-other")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-other")
    async with loaded(server) as embedding:
        await embedding.embed([SAID], of="question")
    assert not any("other" in value for value in server.received[0].headers.values())


async def test_the_key_does_not_follow_to_another_service(server: OpenAIServer) -> None:
    async with OpenAIServer() as elsewhere, loaded(server) as embedding:
        server.script(Answer(status=307, headers={"location": f"{elsewhere.base_url}/embeddings"}))
        await embedding.embed([SAID], of="question")
        assert elsewhere.received
        assert not any(KEY in value for request in elsewhere.received for value in request.headers.values())


# Reading the answer


async def test_vectors_go_by_their_index(server: OpenAIServer) -> None:
    vectors = [word_vector(text) for text in ("a", "b", "c")]
    async with loaded(server) as embedding:
        server.script(Answer(body=embeddings([vectors[2], vectors[0], vectors[1]], [2, 0, 1])))
        found = await embedding.embed(["a", "b", "c"], of="question")
    np.testing.assert_allclose(found, unit(vectors), atol=1e-5)


@pytest.mark.parametrize("as_base64", [True, False])
async def test_numbers_come_as_base64_or_as_lists(server: OpenAIServer, as_base64: bool) -> None:
    """Not every service knows base64."""
    server.answering = lambda request: Answer(
        body=embeddings([word_vector(text) for text in request.texts], as_base64=as_base64)
    )
    async with loaded(server) as embedding:
        np.testing.assert_allclose((await embedding.embed([SAID], of="question"))[0], vector(SAID), atol=1e-5)


ONE, NAN = [1.0] * DIMENSIONS, [float("nan")] * DIMENSIONS
UNUSABLE = [
    HTML,
    Answer(body=b""),
    Answer(body=b'{"data": ['),
    Answer(body=b"[]"),
    Answer(body=b'{"data": null}'),
    Answer(body=b'{"data": [1, 2]}'),
    Answer(body=b'{"data": [{"embedding": "!"}, {"embedding": "!"}]}'),
    Answer(body=embeddings([])),
    Answer(body=embeddings([ONE])),
    Answer(body=embeddings([ONE, ONE, ONE])),
    Answer(body=embeddings([ONE, ONE], [0, 0])),
    Answer(body=embeddings([ONE, ONE], [1, 2])),
    Answer(body=embeddings([ONE, ONE], [[], {}])),
    Answer(body=embeddings([ONE, [1.0]])),
    Answer(body=embeddings([[1.0], [1.0]])),
    Answer(body=embeddings([[], []])),
    Answer(body=embeddings([[ONE], [ONE]])),
    Answer(body=embeddings([None, None])),
    Answer(body=embeddings([["a"], ["b"]])),
    Answer(body=embeddings([[1e300] * DIMENSIONS] * 2)),
    Answer(body=embeddings([ONE, NAN], as_base64=True)),
]
FAILING = [
    Answer(status=408),
    Answer(status=429),
    Answer(status=500),
    Answer(status=503),
    Answer(fault="broken"),
    Answer(fault="cut"),
]


@pytest.mark.parametrize("answer", [*FAILING, *UNUSABLE])
async def test_after_a_failure_a_question_is_asked_again(server: OpenAIServer, answer: Answer) -> None:
    """Once is enough where the next answer is good."""
    async with loaded(server) as embedding:
        server.script(answer)
        np.testing.assert_allclose(
            await embedding.embed(["a", "b"], of="question"), [vector("a"), vector("b")], atol=1e-5
        )


@pytest.mark.parametrize("answer", [*FAILING, *UNUSABLE, Answer(status=401), Answer(status=404), Answer(status=400)])
async def test_a_service_that_goes_on_failing_gives_a_question_no_vector(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture, answer: Answer
) -> None:
    """One clear line that names the service; neither it nor the log holds the key or what was asked."""
    caplog.set_level(logging.DEBUG)
    async with loaded(server) as embedding:
        server.answering = lambda _: answer
        with pytest.raises(EmbeddingUnavailable) as caught:
            await embedding.embed([SAID, "b"], of="question")
    assert f"embedder-1 at {server.origin} does not embed" in str(caught.value)
    for text in (str(caught.value), caplog.text):
        assert KEY not in text
        assert SAID not in text
    assert "\n" not in str(caught.value)
    assert len(server.received) <= 2 * ATTEMPTS


# What must not be lost


#: One vector is no answer to two texts, but it is one to each of them.
FOR_ONE = Answer(body=embeddings([ONE]))
LASTING = [Answer(status=401), Answer(status=404), Answer(status=400)]


@pytest.mark.slow
@pytest.mark.parametrize("answer", [*FAILING, *LASTING, *(answer for answer in UNUSABLE if answer != FOR_ONE)])
async def test_patience_waits_until_the_service_is_back(server: OpenAIServer, answer: Answer) -> None:
    """Whatever the failure: what is to be kept has all its vectors in the end."""
    texts = [f"text {i}" for i in range(10)]
    async with loaded(server, batch_size=4) as embedding:
        server.answering = lambda _: answer
        kept = asyncio.create_task(embedding.embed(texts, of="document"))
        await until(lambda: len(server.received) > 20)
        assert not kept.done()
        server.answering = lambda _: Answer()
        np.testing.assert_allclose(await kept, [vector(text) for text in texts], atol=1e-5)


async def test_a_service_that_has_gone_is_waited_for(server: OpenAIServer) -> None:
    async with loaded(server) as embedding:
        await server.__aexit__()
        kept = asyncio.create_task(embedding.embed([SAID], of="document"))
        await until(lambda: embedding._outage.reason)
        assert "APIConnectionError): start the service, or correct its URL" in embedding._outage.reason
        assert not kept.done()


@pytest.mark.slow
@pytest.mark.parametrize("answer", [Answer(delay=60), Answer(fault="endless")], ids=["late", "endless"])
async def test_an_answer_that_does_not_end_is_asked_for_again(server: OpenAIServer, answer: Answer) -> None:
    """Also where bytes keep coming."""
    async with loaded(server, timeout_seconds=10) as embedding:
        server.script(answer)
        np.testing.assert_allclose((await embedding.embed([SAID], of="document"))[0], vector(SAID), atol=1e-5)
    assert len(server.received) == 2


async def test_the_pause_that_a_service_asks_for_is_kept(server: OpenAIServer) -> None:
    """429 with Retry-After."""
    asked: list[float] = []

    def answering(request: Received) -> Answer:
        asked.append(asyncio.get_running_loop().time())
        return Answer(status=429, headers={"retry-after": "0.4"}) if len(asked) == 1 else Answer()

    async with loaded(server) as embedding:
        server.answering = answering
        await embedding.embed([SAID], of="document")
    first, second = asked
    assert second - first >= 0.4


async def test_a_question_does_not_wait_for_the_pause(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has an answer, or a reason, before the API gives up."""
    monkeypatch.setattr(embedding, "QUESTION_SECONDS", 2.0)
    async with loaded(server) as embedding_:
        server.script(Answer(status=429, headers={"retry-after": "30"}))
        with pytest.raises(
            EmbeddingUnavailable, match=r"RateLimitError, 429\): raise the service's limit.*ask again"
        ):
            await embedding_.embed([SAID], of="question")


async def test_a_question_does_not_wait_for_a_slow_service(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loaded(server) as embedding_:
        server.gate.clear()
        with monkeypatch.context() as patch:
            patch.setattr(embedding, "QUESTION_SECONDS", 0.2)
            with pytest.raises(EmbeddingUnavailable, match="is busy, or being started; ask again"):
                await embedding_.embed([SAID], of="question")
        server.gate.set()
        np.testing.assert_allclose((await embedding_.embed([SAID], of="question"))[0], vector(SAID), atol=1e-5)


async def test_while_it_is_known_to_fail_a_question_asks_once(server: OpenAIServer) -> None:
    async with loaded(server) as embedding:
        server.answering = lambda _: Answer(status=503)
        for asked in (ATTEMPTS, ATTEMPTS + 1, ATTEMPTS + 2):
            with pytest.raises(EmbeddingUnavailable):
                await embedding.embed([SAID], of="question")
            assert len(server.received) == asked
        server.answering = lambda _: Answer()
        np.testing.assert_allclose((await embedding.embed([SAID], of="question"))[0], vector(SAID), atol=1e-5)


async def test_an_outage_is_one_warning_and_its_end_a_line(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Not a line for each attempt."""
    caplog.set_level(logging.INFO, "streams.models.embedding.embedding")
    async with loaded(server, batch_size=1) as embedding:
        server.answering = lambda _: Answer(status=503)
        kept = asyncio.create_task(embedding.embed(["a", "b", "c"], of="document"))
        await until(lambda: len(server.received) > 30)
        server.answering = lambda _: Answer()
        await kept
    said = [record.getMessage() for record in caplog.records if record.name == "streams.models.embedding.embedding"]
    assert said[0] == (
        f"nothing is embedded for now: embedder-1 at {server.origin} does not embed (InternalServerError, 503): "
        "check the service. The worker tries again; new memories wait"
    )
    assert said[1:] == ["embedding goes on after 0 s"] or said[1:] == ["embedding goes on after 1 s"]


def test_a_long_outage_is_recalled_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    seconds = [1_000.0]
    outage = _Outage(lambda: seconds[0])
    for _ in range(130):
        outage.goes_on("it is down")
        seconds[0] += 1
    assert len(warnings(caplog)) == 1 + 130 // REMINDER_SECONDS


# Texts that the service does not take


async def test_a_batch_that_is_too_large_for_the_service_is_divided(server: OpenAIServer) -> None:
    texts = [f"text {i}" for i in range(10)]
    async with loaded(server) as embedding:
        server.answering = lambda request: Answer() if len(request.texts) <= 3 else Answer(status=422)
        vectors = await embedding.embed(texts, of="document")
    np.testing.assert_allclose(vectors, [vector(text) for text in texts], atol=1e-5)


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_text_that_is_too_long_for_the_model_is_shortened(server: OpenAIServer, status: int) -> None:
    """And the others of its batch are not."""
    texts = [f"text {i}" for i in range(9)] + ["long " * 100]
    async with loaded(server) as embedding:
        server.answering = refusing(lambda text: len(text) > 200, status)
        vectors = await embedding.embed(texts, of="document")
    np.testing.assert_allclose(vectors[:9], [vector(text) for text in texts[:9]], atol=1e-5)
    np.testing.assert_allclose(vectors[9], vector(texts[9][:125]), atol=1e-5)


async def test_a_text_that_is_refused_whatever_its_length_has_no_vector(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Its memory is kept, BM25 finds it, and the others do not wait for it."""
    async with loaded(server) as embedding:
        server.answering = refusing(lambda text: "forbidden" in text)
        vectors = await embedding.embed(["a", "forbidden " * 10, "b"], of="document")
    np.testing.assert_allclose(vectors[[0, 2]], [vector("a"), vector("b")], atol=1e-5)
    assert not vectors[1].any()
    assert warnings(caplog) == [
        f"embedder-1 at {server.origin} refuses a text of 100 characters, also shortened: it gets no vector"
    ]


async def test_a_text_that_breaks_the_service_holds_up_no_other_for_ever(server: OpenAIServer) -> None:
    """A 500 may be a passing one, so it is asked about a few times more."""
    async with loaded(server) as embedding:
        server.answering = refusing(lambda text: "odd" in text, 500)
        vectors = await embedding.embed(["a", "odd", "b"], of="document")
        tries = sum(request.texts == ["a", "odd", "b"] for request in server.received)
    np.testing.assert_allclose(vectors[[0, 2]], [vector("a"), vector("b")], atol=1e-5)
    assert not vectors[1].any()
    assert tries == 5


async def test_a_text_without_numbers_is_treated_as_a_refused_one(server: OpenAIServer) -> None:
    def answering(request: Received) -> Answer:
        vectors = [NAN if text == "odd" else word_vector(text) for text in request.texts]
        return Answer(body=embeddings(vectors, as_base64=True))

    async with loaded(server) as embedding:
        server.answering = answering
        said, odd = await embedding.embed(["a", "odd"], of="document")
    np.testing.assert_allclose(said, vector("a"), atol=1e-5)
    assert not odd.any()


# At the start


async def test_at_the_start_the_dimension_is_learnt(server: OpenAIServer) -> None:
    """From harmless sentences of our own."""
    embedding = asking(server.base_url, batch_size=16)
    embedding.start()
    model = await embedding.model()
    assert (embedding.ready, model.name, model.dimension) == (True, "embedder-1", DIMENSIONS)
    assert [
        text for request in server.received for text in request.texts
    ] == calibration.questions() + calibration.documents()
    await embedding.stop()


@pytest.mark.parametrize(
    ("answer", "requests", "what"),
    [
        (Answer(status=401), 1, "(AuthenticationError, 401): correct the key"),
        (Answer(status=403), 1, "(PermissionDeniedError, 403): give the key access to this model"),
        (Answer(status=404), 1, "(NotFoundError, 404): correct the URL or embedding.model"),
        (
            Answer(status=400),
            1,
            "(BadRequestError, 400): set another embedding.model, lower embedding.batch_size, or",
        ),
        (Answer(status=413), 1, "(APIStatusError, 413): lower embedding.batch_size"),
        (Answer(status=422), 1, "(UnprocessableEntityError, 422): lower embedding.batch_size"),
        (Answer(status=429), ATTEMPTS, "(RateLimitError, 429): raise the service's limit"),
        (Answer(status=500), ATTEMPTS, "(InternalServerError, 500): check the service"),
        (Answer(fault="broken"), ATTEMPTS, "(APIConnectionError): start the service, or correct its URL"),
        pytest.param(
            Answer(fault="endless"),
            ATTEMPTS,
            "(TimeoutError): check the service, or raise embedding.timeout_seconds",
            marks=pytest.mark.slow,
        ),
        (HTML, ATTEMPTS, "its answer is not a list of embeddings; check the service and embedding.model"),
    ],
)
async def test_a_service_that_does_not_embed_at_the_start_is_one_clear_line(
    server: OpenAIServer, answer: Answer, requests: int, what: str
) -> None:
    """After a few attempts, where it may be passing."""
    server.answering = lambda _: answer
    embedding = asking(server.base_url, timeout_seconds=1 if answer.fault == "endless" else 30)
    embedding.start()
    with pytest.raises(SiltstoneError) as caught:
        await embedding.model()
    message = str(caught.value)
    assert message.startswith(f"embedder-1 at {server.origin} does not embed")
    assert what in message
    assert KEY not in message
    assert "\n" not in message
    assert len(server.received) == requests
    assert not embedding.ready
    await embedding.stop()


async def test_a_passing_failure_does_not_end_the_start(server: OpenAIServer) -> None:
    server.script(Answer(status=429), Answer(status=503))
    async with loaded(server) as embedding:
        assert embedding.ready


async def test_a_service_that_ignores_the_dimensions_is_told_of(server: OpenAIServer) -> None:
    server.answering = lambda request: Answer(body=embeddings([word_vector(text, 16) for text in request.texts]))
    embedding = asking(server.base_url, dimensions=8)
    embedding.start()
    with pytest.raises(SiltstoneError, match="its vectors have 16 dimensions, not 8"):
        await embedding.model()
    await embedding.stop()


async def test_a_key_in_the_path_is_in_no_error(server: OpenAIServer) -> None:
    """Some services take it there."""
    server.answering = lambda _: Answer(status=401)
    embedding = asking(f"{server.origin}/{KEY}/v1")
    embedding.start()
    with pytest.raises(SiltstoneError) as caught:
        await embedding.model()
    assert KEY not in str(caught.value)
    assert server.received[0].path == f"/{KEY}/v1/embeddings"
    await embedding.stop()


async def test_stopping_ends_what_is_under_way(server: OpenAIServer) -> None:
    async with loaded(server) as embedding:
        server.answering = lambda _: Answer(status=503)
        kept = asyncio.create_task(embedding.embed([SAID], of="document"))
        await until(lambda: len(server.received) > 3)
        kept.cancel()
        with pytest.raises(asyncio.CancelledError):
            await kept
        asked = len(server.received)
    assert len(server.received) == asked


def test_the_settings_show_no_key() -> None:
    settings = EmbeddingSettings(backend="openai", api_key=SecretStr(KEY))
    assert KEY not in repr(settings) + str(settings)
