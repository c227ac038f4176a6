"""Questions and documents are embedded apart: prefixes, input types, caches, calls, and what a shard records."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.settings import EmbeddingSettings
from streams.models.embedding import calibration
from streams.models.embedding import process as embedding_process
from streams.models.embedding.embedders import (
    Model,
    SentenceTransformersEmbedder,
    Side,
    Vectors,
    name_with,
    own_prompt,
)
from streams.models.embedding.embedding import EMBEDDED_CHARS, Embedding
from streams.models.embedding.lanes import UNDER_WAY
from streams.models.embedding.process import EmbeddingProcess
from streams.runtime.called_process import CalledProcess
from tests.streams.models.embedding.test_embedding import transformer
from tests.support.openai_server import Answer, OpenAIServer

T = TypeVar("T")

PREFIXES = {"query_prefix": "query: ", "document_prefix": "passage: "}
TYPES = {"query_input_type": "query", "document_input_type": "document"}
#: What makes a vector of a text: a question, a memory, or an exchange of a window.
SIDES: tuple[Side, Side] = ("question", "document")
Way = Literal["question", "document", "said"]


def settings_of(base_url: str, **changes: object) -> EmbeddingSettings:
    fields: dict[str, object] = {
        "backend": "openai",
        "api_key": "sk-test",
        "base_url": base_url,
        "model": "embedder-1",
    }
    return EmbeddingSettings.model_validate(fields | changes)


@contextlib.asynccontextmanager
async def loaded(settings: EmbeddingSettings) -> AsyncIterator[Embedding]:
    embedding = Embedding(settings)
    embedding.start()
    try:
        await embedding.model()
        yield embedding
    finally:
        await embedding.stop()


async def embedded(embedding: Embedding, way: Way, texts: Sequence[str]) -> Vectors:
    return await (embedding.embed_said(texts) if way == "said" else embedding.embed(texts, way))


# At the wire of a service


@pytest.mark.parametrize(
    ("way", "prefix", "input_type"),
    [("question", "query: ", "query"), ("document", "passage: ", "document"), ("said", "passage: ", "document")],
)
async def test_a_service_is_told_what_a_text_is(server: OpenAIServer, way: Way, prefix: str, input_type: str) -> None:
    """By the text before it, and by a parameter."""
    async with loaded(settings_of(server.base_url, **PREFIXES, **TYPES, dimensions=8)) as embedding:
        server.received.clear()
        await embedded(embedding, way, ["I live in Oslo", "你好"])
    (request,) = server.received
    assert request.body == {
        "model": "embedder-1",
        "input": [f"{prefix}I live in Oslo", f"{prefix}你好"],
        "encoding_format": "base64",
        "dimensions": 8,
        "input_type": input_type,
    }


async def test_the_parameter_may_have_another_name(server: OpenAIServer) -> None:
    async with loaded(settings_of(server.base_url, **TYPES, input_type_name="task")) as embedding:
        server.received.clear()
        await embedding.embed(["tea"], of="question")
    assert (server.received[0].body["task"], "input_type" in server.received[0].body) == ("query", False)


async def test_a_side_without_a_setting_is_told_nothing(server: OpenAIServer) -> None:
    """BGE has an instruction for questions alone."""
    async with loaded(settings_of(server.base_url, query_prefix="Q: ", query_input_type="query")) as embedding:
        server.received.clear()
        await embedding.embed(["tea"], of="document")
    assert server.received[0].body == {"model": "embedder-1", "input": ["tea"], "encoding_format": "base64"}


async def test_a_model_is_measured_with_questions_and_documents(server: OpenAIServer) -> None:
    """Its scales are those of the cosines that searches compute."""
    async with loaded(settings_of(server.base_url, **PREFIXES, batch_size=16)):
        sent = [text for request in server.received for text in request.texts]
    assert sent == [
        *(f"query: {text}" for text in calibration.questions()),
        *(f"passage: {text}" for text in calibration.documents()),
    ]


async def test_a_cut_text_keeps_its_prefix(server: OpenAIServer) -> None:
    """The text is cut, whether it is too long for us or for the service."""
    async with loaded(settings_of(server.base_url, **PREFIXES)) as embedding:
        server.received.clear()
        server.answering = lambda request: Answer(status=400) if len(request.texts[0]) > 300 else Answer()
        await embedding.embed(["long " * 1000], of="document")
    sent = [request.texts[0] for request in server.received]
    assert len(sent[0]) == len("passage: ") + EMBEDDED_CHARS
    assert len(sent[-1]) == len("passage: ") + EMBEDDED_CHARS // 4
    assert all(text.startswith("passage: ") for text in sent)


async def test_a_blank_text_is_blank_before_its_prefix(server: OpenAIServer) -> None:
    async with loaded(settings_of(server.base_url, **PREFIXES)) as embedding:
        server.received.clear()
        assert not (await embedding.embed([" "], of="question")).any()
    assert server.received == []


# Caches and calls


class Sided:
    """A backend whose vectors say which side a text has."""

    simultaneous = 1

    async def load(self) -> Model:
        return Model("sided", 8)

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        return np.stack([self.vector(text, of) for text in texts])

    async def close(self) -> None:
        """There is nothing to let go of."""

    @staticmethod
    def vector(text: str, of: Side) -> Vectors:
        vector = np.zeros(8, np.float32)
        vector["abcd".index(text) + (4 if of == "question" else 0)] = 1
        return vector


ASKED = st.lists(st.tuples(st.sampled_from(["question", "document", "said"]), st.lists(st.sampled_from("abcd"))))


@given(ASKED)
def test_no_cache_takes_a_question_for_a_document(asked: list[tuple[Way, list[str]]]) -> None:
    """In whatever order the same texts are asked, told and written."""

    async def all_of_them() -> None:
        embedding = Embedding(EmbeddingSettings(backend="use"))
        embedding._backend = Sided()
        embedding.start()
        for way, texts in asked:
            vectors = await embedded(embedding, way, texts) if texts else np.zeros((0, 8), np.float32)
            expected = [Sided.vector(text, "question" if way == "question" else "document") for text in texts]
            np.testing.assert_array_equal(vectors, np.array(expected, np.float32).reshape(-1, 8))
        await embedding.stop()

    asyncio.run(all_of_them())


class Called:
    """In the place of a model's process: it answers when the test says so."""

    def __init__(self, model: Model) -> None:
        self.model, self.calls = model, list[tuple[list[str], Side]]()
        self.go = asyncio.Event()

    async def call(self, function: Callable[..., Any], *given: Any) -> Any:
        if function is embedding_process._load:
            return self.model
        self.calls.append(cast(tuple[list[str], Side], given))
        await self.go.wait()
        return np.ones((len(given[0]), 1), np.float32)

    async def close(self) -> None:
        """There is nothing to let go of."""


@pytest.mark.parametrize(
    ("asymmetric", "calls"),
    [
        (False, [(["asked", "said"], "document")]),
        (True, [(["asked"], "question"), (["said"], "document")]),
    ],
)
async def test_a_symmetric_model_gets_both_sides_in_one_call(
    asymmetric: bool, calls: list[tuple[list[str], Side]]
) -> None:
    """`use` does no more work than it did without sides."""
    process = EmbeddingProcess(EmbeddingSettings(backend="use"))
    called = Called(Model("model", 1, asymmetric=asymmetric))
    process._process = cast(CalledProcess, called)
    await process.load()
    first = [asyncio.create_task(process.embed(["x"], "document", 1, urgent=False)) for _ in range(UNDER_WAY)]
    await asyncio.sleep(0)
    waiting = [
        asyncio.create_task(process.embed(["asked"], "question", 1, urgent=True)),
        asyncio.create_task(process.embed(["said"], "document", 1, urgent=True)),
    ]
    await asyncio.sleep(0)
    called.go.set()
    await asyncio.gather(*first, *waiting)
    assert called.calls[UNDER_WAY:] == calls
    await process.close()


# What a shard records


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "embedder-1"),
        ({"query_prefix": "query: ", "query_input_type": "query", "input_type_name": "task"}, "embedder-1"),
        ({"document_prefix": "", "document_input_type": ""}, "embedder-1"),
        (PREFIXES, 'embedder-1 with document_prefix "passage: "'),
        (TYPES, 'embedder-1 with input_type "document"'),
        (
            {**PREFIXES, **TYPES, "input_type_name": "task"},
            'embedder-1 with document_prefix "passage: " and task "document"',
        ),
    ],
)
async def test_another_prefix_of_documents_is_another_model(
    server: OpenAIServer, changes: dict[str, object], name: str
) -> None:
    """Without one it is the model that earlier versions recorded. What questions get does not matter."""
    async with loaded(settings_of(server.base_url, **changes)) as embedding:
        assert (await embedding.model()).name == name


def test_a_recorded_prefix_is_one_line() -> None:
    assert name_with("model", {"document_prefix": 'a "b"\n'}) == r'model with document_prefix "a \"b\"\n"'


# A sentence-transformers model


@pytest.mark.parametrize(
    ("prompts", "question", "document"),
    [
        ({}, "", ""),
        ({"query": None, "document": None}, "", ""),
        ({"query": "q ", "document": "d ", "passage": "p "}, "q ", "d "),
        ({"query": "q ", "document": "", "passage": "p "}, "q ", "p "),
        ({"corpus": "c ", "classification": "x "}, "", "c "),
    ],
)
def test_a_models_own_prompts_are_found(prompts: dict[str, str | None], question: str, document: str) -> None:
    assert (own_prompt(prompts, "question"), own_prompt(prompts, "document")) == (question, document)


OWN = {"query": "query: ", "passage": "passage: ", "other": "cluster: "}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Copies of the real model, each with the prompts in its own configuration."""

    def made(prompts: dict[str, str], default: str | None = None) -> str:
        folder = tmp_path_factory.mktemp("model") / "copy"
        shutil.copytree(transformer(), folder)
        told = {"prompts": prompts, "default_prompt_name": default}
        (folder / "config_sentence_transformers.json").write_bytes(orjson.dumps(told))
        return str(folder)

    return made


def local(model: str, **changes: object) -> EmbeddingSettings:
    return EmbeddingSettings.model_validate({"backend": "sentence-transformers", "model": model, **changes})


@pytest.mark.slow
@pytest.mark.own_model
async def test_a_models_prompts_are_used(folders: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the settings instead, where there are any; the text behind a prompt is the whole text's vector."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = folders(OWN)
    async with (
        loaded(local(str(transformer()))) as plain,
        loaded(local(folder)) as own,
        loaded(local(folder, query_prefix="Q: ", document_prefix="")) as given,
    ):
        models = [await embedding.model() for embedding in (plain, own, given)]
        for embedding, question, document in ((own, "query: ", "passage: "), (given, "Q: ", "")):
            for way, prefix in (("question", question), ("document", document), ("said", document)):
                found = await embedded(embedding, cast(Way, way), ["I live in Oslo"])
                np.testing.assert_allclose(
                    found, await plain.embed([f"{prefix}I live in Oslo"], "document"), atol=1e-4
                )
    assert [model.asymmetric for model in models] == [False, True, True]
    assert models[1].name == f'{models[2].name} with document_prefix "passage: "'
    assert models[1].cosine != models[0].cosine


async def in_a_process(function: Callable[..., T], *given: object) -> T:
    """The library leaves threads, loggers and variables behind."""
    process = CalledProcess("embedding", {"HF_HUB_OFFLINE": "1"})
    try:
        return await process.call(function, *given)
    finally:
        await process.close()


def _names(*given: EmbeddingSettings) -> list[str]:
    """What shards record, behind the model's fingerprint."""
    names = [SentenceTransformersEmbedder(settings).name for settings in given]
    return [name.removeprefix("sentence-transformers:")[16:] for name in names]


@pytest.mark.slow
@pytest.mark.own_model
async def test_a_store_of_an_earlier_version_is_known_by_its_prompt(folders: Callable[..., str]) -> None:
    """It embedded everything with the model's default prompt, mostly none: with another one, its vectors are old."""
    none, passage, query = folders(OWN), folders(OWN, "passage"), folders(OWN, "query")
    told = await in_a_process(
        _names,
        local(none),
        local(none, document_prefix="", query_prefix="Q: "),
        local(passage),
        local(passage, document_prefix=""),
        local(query),
        local(query, document_prefix="query: "),
    )
    assert told == [
        ' with document_prefix "passage: "',
        "",
        "",
        ' with document_prefix ""',
        ' with document_prefix "passage: "',
        "",
    ]


def _routed(tokenizer: str, folder: str, default: str) -> tuple[str, bool, float]:
    """Name, symmetry, and the cosine of a question with the same text as a document, of a model with two parts."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Router, StaticEmbedding
    from tokenizers import Tokenizer

    tokens = Tokenizer.from_file(tokenizer)
    parts = [StaticEmbedding(tokens, embedding_dim=8) for _ in range(2)]
    router = Router.for_query_document([parts[0]], [parts[1]], default_route=default)
    SentenceTransformer(modules=[router]).save(folder)
    embedder = SentenceTransformersEmbedder(local(folder))
    question, document = (embedder.embed(["tea"], side)[0] for side in SIDES)
    return embedder.name.removeprefix("sentence-transformers:")[16:], embedder.asymmetric, float(question @ document)


@pytest.mark.slow
@pytest.mark.own_model
@pytest.mark.parametrize(("default", "told"), [("document", ""), ("query", ' with route "document"')])
async def test_a_model_with_two_parts_embeds_each_side_with_its_own(tmp_path: Path, default: str, told: str) -> None:
    """Earlier versions embedded documents with its default part."""
    tokenizer = str(transformer() / "tokenizer.json")
    found, asymmetric, cosine = await in_a_process(_routed, tokenizer, str(tmp_path / "routed"), default)
    assert (found, asymmetric, cosine < 0.99) == (told, True, True)
