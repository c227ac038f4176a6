"""Questions and memories are embedded apart by a running worker, and the store knows what its memories got."""

from __future__ import annotations

import httpx
import orjson
import pytest
from pydantic import SecretStr

from schemas.errors import EmbeddingMismatch
from schemas.settings import ONE_MODEL, EmbeddingSettings, Settings
from streams.doors.cli import running
from streams.doors.cli.reembed import requested
from streams.memory.reembedding import to_set
from tests.support.openai_server import DIMENSIONS, OpenAIServer
from tests.support.quick_commands import siltstone
from tests.worker.test_embedded import recorded
from tests.worker.test_reembed import NOBODY, in_environment, kept, said, user_of, with_service, working

PREFIXES = {"query_prefix": "query: ", "document_prefix": "passage: "}


@pytest.fixture
def plain(settings: Settings, server: OpenAIServer) -> Settings:
    """Its model is told nothing, as in earlier versions."""
    return with_service(settings, server.base_url)


def with_told(settings: Settings, **told: object) -> Settings:
    return settings.model_copy(update={"embedding": settings.embedding.model_copy(update=told)})


async def found(http: httpx.AsyncClient, number: int) -> float:
    """The cosine of a memory with its own words as the question."""
    asked = {"user_id": user_of(number), "query": said(number), "include_all": True, "explain": True}
    best = (await http.post("/v1/search", json=asked)).raise_for_status().json()["results"][0]
    assert best["memory"] == said(number)
    return float(best["explain"]["cosine"])


def sent(server: OpenAIServer, number: int) -> set[str]:
    """What the service got of these words."""
    return {text for request in server.received for text in request.texts if said(number) in text}


async def test_a_search_asks_with_a_question_what_was_kept_as_a_document(
    plain: Settings, server: OpenAIServer
) -> None:
    """On the wire, with prefixes and input types; the same words are two texts."""
    told = with_told(plain, **PREFIXES, query_input_type="query", document_input_type="document")
    async with working(told) as (worker, http):
        server.received.clear()
        await kept(worker, 0)
        assert sent(server, 0) == {f"passage: {said(0)}"}
        assert {request.body["input_type"] for request in server.received} == {"document"}
        server.received.clear()
        assert 0 < await found(http, 0) < 0.99  # of two prefixes, which the service takes for words
        assert sent(server, 0) == {f"query: {said(0)}"}
        assert {request.body["input_type"] for request in server.received} == {"query"}
    assert recorded(told) == {('one with document_prefix "passage: " and input_type "document"', str(DIMENSIONS))}


async def test_a_prefix_of_questions_may_change_and_one_of_documents_is_another_model(
    plain: Settings, server: OpenAIServer
) -> None:
    """A store without prefixes stays as it is; then one command makes the vectors that the settings ask for."""
    told = with_told(plain, **PREFIXES)
    async with working(plain) as (worker, _):
        await kept(worker, 0)
    async with working(with_told(plain, query_prefix="query: ", document_prefix="")) as (_, http):
        await found(http, 0)
        assert sent(server, 0) == {said(0), f"query: {said(0)}"}
    async with running.started(told) as refused:
        with pytest.raises(
            EmbeddingMismatch,
            match=rf'come from one \({DIMENSIONS} dimensions\), not from one with document_prefix "passage: " '
            r".*run `siltstone reembed`",
        ):
            await running.until_ready(refused)
    variables = {
        "SILTSTONE_EMBEDDING__QUERY_PREFIX": "query: ",
        "SILTSTONE_EMBEDDING__DOCUMENT_PREFIX": "passage: ",
    }
    server.received.clear()
    result = await siltstone("reembed", "--url", NOBODY, "--json", **in_environment(plain), **variables)
    assert result.returncode == 0, result.stderr
    assert orjson.loads(result.stdout)["model"] == 'one with document_prefix "passage: "'
    assert sent(server, 0) == {f"passage: {said(0)}"}
    async with working(told) as (_, http):
        await found(http, 0)
    assert recorded(told) == {('one with document_prefix "passage: "', str(DIMENSIONS))}


async def test_a_running_worker_takes_another_prefix(plain: Settings, server: OpenAIServer) -> None:
    """From the command's options; it says which settings the next start needs, with their white space."""
    async with working(plain) as (worker, http):
        await kept(worker, 0)
        server.received.clear()
        url = f"http://127.0.0.1:{worker.api.port}"
        words = ("reembed", "--query-prefix", "query: ", "--document-prefix", "passage: ", "--url", url)
        result = await siltstone(*words, **in_environment(plain))
        assert result.returncode == 0, result.stderr
        assert 'vectors of one with document_prefix "passage: "' in result.stdout
        assert result.stdout.splitlines()[-2:] == [
            '  embedding.query_prefix: "query: "',
            '  embedding.document_prefix: "passage: "',
        ]
        assert sent(server, 0) == {f"passage: {said(0)}"}
        server.received.clear()
        assert await found(http, 0) < 0.99
        assert sent(server, 0) == {f"query: {said(0)}"}


async def test_the_doctor_says_that_memories_got_another_prefix(plain: Settings, server: OpenAIServer) -> None:
    async with working(plain) as (worker, _):
        await kept(worker, 0)
    found = await siltstone(
        "doctor", "--json", **in_environment(plain), SILTSTONE_EMBEDDING__DOCUMENT_PREFIX="passage: "
    )
    (finding,) = [one for one in orjson.loads(found.stdout)["findings"] if one["check"] == "embedding"]
    assert 'vectors from one (32 dimensions), not from one with document_prefix "passage: "' in finding["what"]


@pytest.mark.parametrize(
    ("backend", "told", "keys"),
    [
        ("openai", {}, {}),
        ("openai", {"document_prefix": "d "}, {"embedding.document_prefix": "d "}),
        ("openai", {"query_input_type": "q"}, {"embedding.query_input_type": "q"}),
        ("sentence-transformers", {"query_prefix": ""}, {"embedding.query_prefix": ""}),
        ("sentence-transformers", {"query_input_type": "q"}, {}),
        ("use", {"query_prefix": "q "}, {}),
        ("e5", {"query_prefix": "q "}, {}),
    ],
)
def test_only_what_the_backend_uses_is_to_be_set(
    backend: str, told: dict[str, object], keys: dict[str, object]
) -> None:
    before = EmbeddingSettings.model_validate({"backend": backend})
    wanted = before.model_copy(update=told)
    named = {"embedding.backend": backend} | ({} if backend in ONE_MODEL else {"embedding.model": before.model})
    assert to_set(wanted, before) == named | keys


def test_a_backend_auto_stays_for_embedded_models_only() -> None:
    auto = EmbeddingSettings()
    assert to_set(EmbeddingSettings(backend="e5"), auto) == {}
    other = EmbeddingSettings(backend="openai", model="m")
    assert to_set(other, auto) == {"embedding.backend": "openai", "embedding.model": "m"}


def test_a_worker_is_sent_only_the_fields_that_are_set() -> None:
    """A worker of an older version refuses unknown fields."""
    assert requested(EmbeddingSettings(backend="openai", model="m")) == {"backend": "openai", "model": "m"}
    wanted = EmbeddingSettings(backend="openai", model="m", api_key=SecretStr("secret"), document_prefix="passage: ")
    assert requested(wanted) == {"backend": "openai", "model": "m", "document_prefix": "passage: "}
