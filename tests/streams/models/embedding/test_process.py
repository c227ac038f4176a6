"""A local model's process: killed, broken, or unable to load its model."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import pickle
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal, cast

import numpy as np
import pytest

from schemas.errors import EmbeddingUnavailable, SiltstoneError
from schemas.one_blas_thread import ONE_THREAD
from schemas.settings import EmbeddingSettings
from streams.models.embedding import process as embedding_process
from streams.models.embedding.embedders import Embedder, Side, recorded_name
from streams.models.embedding.embedding import Embedding
from streams.models.embedding.lanes import MOST_DEATHS
from streams.models.embedding.process import EmbeddingProcess
from streams.runtime.called_process import CalledProcess
from tests.streams.models.embedding.test_embedding import transformer
from tests.support.waiting import until

pytestmark = pytest.mark.own_model

TEXTS = ["I live in Oslo.", "我对花生过敏", "My cat is called Pepper."]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inherited by the model's process."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@contextlib.asynccontextmanager
async def started(settings: EmbeddingSettings) -> AsyncIterator[Embedding]:
    embedding = Embedding(settings)
    embedding.start()
    try:
        yield embedding
    finally:
        await embedding.stop()


def process_of(embedding: Embedding) -> CalledProcess:
    return cast(EmbeddingProcess, embedding._backend)._process


def kill(embedding: Embedding) -> None:
    """Its process, which was started."""
    pid = process_of(embedding).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
async def test_a_killed_process_is_started_again(caplog: pytest.LogCaptureFixture) -> None:
    """What is asked afterwards is answered as before."""
    async with started(EmbeddingSettings(backend="use")) as embedding:
        before = await embedding.embed(TEXTS, of="document")
        first = process_of(embedding).pid
        kill(embedding)
        np.testing.assert_array_equal(await embedding.embed(TEXTS, of="document"), before)
        assert process_of(embedding).pid not in (None, first)
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["the embedding model's process has died; it is started again"]


@pytest.mark.slow
async def test_what_is_under_way_when_it_is_killed_is_not_lost() -> None:
    """From several callers at once, each of which gets its own vectors."""
    async with started(EmbeddingSettings(backend="use", batch_size=8)) as embedding:
        texts = [f"{text} {i}" for i in range(100) for text in TEXTS]
        expected = await embedding.embed(TEXTS, of="document")
        asked = [asyncio.create_task(embedding.embed([*TEXTS, *texts], of="document")) for _ in range(3)]
        await until(lambda: cast(EmbeddingProcess, embedding._backend)._lanes._calls)
        kill(embedding)
        for vectors in await asyncio.gather(*asked):
            assert vectors.shape == (303, 512)
            np.testing.assert_allclose(vectors[:3], expected, atol=1e-5)
            assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


# Threads


async def threads(embedding: Embedding) -> int:
    """Of the process: OpenBLAS starts its own when it is loaded."""
    return len(await process_of(embedding).call(os.listdir, "/proc/self/task"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
@pytest.mark.parametrize("said", [None, "4"])
async def test_embedding_takes_one_thread(monkeypatch: pytest.MonkeyPatch, said: str | None) -> None:
    """Whoever starts it, and whatever the environment says: a second one would spin, and gain nothing."""
    for name in ONE_THREAD:
        monkeypatch.delenv(name, raising=False)
        if said is not None:
            monkeypatch.setenv(name, said)
    async with started(EmbeddingSettings(backend="use")) as embedding:
        await embedding.embed(TEXTS * 20, of="document")
        assert await threads(embedding) == 1
    assert {os.environ.get(name) for name in ONE_THREAD} == {said}


@pytest.mark.parametrize(("backend", "found"), [("use", "1"), ("e5", "1"), ("sentence-transformers", "4")])
async def test_a_transformer_has_the_threads_that_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, backend: Literal["use", "e5", "sentence-transformers"], found: str
) -> None:
    """What is not said is one, too."""
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    process = embedding_process._process(EmbeddingSettings(backend=backend))
    seen = [await process.call(os.getenv, name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")]
    await process.close()
    assert seen == [found, "1"]


# Processes that die or hang


def _end(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
async def test_texts_that_kill_every_process_end_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a loop; the worker stops with it, and nothing is acknowledged."""
    async with started(EmbeddingSettings(backend="use")) as embedding:
        await embedding.model()
        with monkeypatch.context() as patch:
            patch.setattr("streams.models.embedding.process._embed", _end)
            with pytest.raises(SiltstoneError, match=f"died {MOST_DEATHS} times in a row.*smaller embedding.model"):
                await embedding.embed(TEXTS, of="document")
        assert (await embedding.embed(TEXTS, of="document")).shape == (3, 512)


def _die(_: EmbeddingSettings) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
async def test_a_process_that_dies_while_it_loads_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.models.embedding.process._load", _die)
    async with started(EmbeddingSettings(backend="use")) as embedding:
        with pytest.raises(SiltstoneError, match="died while it loaded the model, usually for lack of memory"):
            await embedding.model()
        assert not embedding.ready


def _hang(*_: object) -> None:
    time.sleep(30)


@pytest.mark.slow
async def test_a_question_does_not_wait_for_a_model_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.models.embedding.embedding.QUESTION_SECONDS", 0.2)
    async with started(EmbeddingSettings(backend="use")) as embedding:
        await embedding.model()
        with monkeypatch.context() as patch:
            patch.setattr("streams.models.embedding.process._embed", _hang)
            with pytest.raises(EmbeddingUnavailable, match="is busy, or being started; ask again"):
                await embedding.embed(TEXTS, of="question")


def _refuse(texts: list[str], of: Side) -> None:
    from streams.models.embedding import process as embedding_process

    class Refusing:
        name = "refusing"

        def embed(self, texts: list[str], of: Side) -> None:
            raise UnicodeDecodeError("utf-8", texts[0].encode(), 0, 1, texts[0])

    embedding_process._in_process[0] = cast(Embedder, Refusing())
    embedding_process._embed(texts, of)


@pytest.mark.slow
async def test_what_a_model_raises_comes_through_without_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(EmbeddingSettings(backend="use")) as embedding:
        await embedding.model()
        monkeypatch.setattr("streams.models.embedding.process._embed", _refuse)
        with pytest.raises(SiltstoneError) as caught:
            await embedding.embed(TEXTS, of="document")
    assert str(caught.value) == "refusing cannot embed 3 texts: UnicodeDecodeError"


def test_an_unavailable_model_can_be_told_of_across_processes() -> None:
    error = pickle.loads(pickle.dumps(EmbeddingUnavailable("not now", passing=False, retry_after=3.0)))
    assert (str(error), error.passing, error.retry_after) == ("not now", False, 3.0)


# Models that cannot be loaded


@pytest.mark.parametrize("folder", ["/nowhere/model", "./nowhere", "~/nowhere"])
async def test_a_folder_that_is_not_there_is_one_clear_line(folder: str) -> None:
    async with started(EmbeddingSettings(backend="sentence-transformers", model=folder)) as embedding:
        with pytest.raises(SiltstoneError) as caught:
            await embedding.model()
    assert str(caught.value) == (
        f"sentence-transformers cannot load embedding.model: there is no folder {folder}; correct its path"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "what"),
    [
        (
            "no-such-model",
            "embedding.model no-such-model (OSError): correct it, give this machine access to the model hub",
        ),
        ("", "embedding.model paraphrase-multilingual-MiniLM-L12-v2 (OSError): correct it, give this"),
        (".", "embedding.model . ("),
    ],
)
async def test_a_transformer_that_cannot_be_loaded_is_one_clear_line(model: str, what: str) -> None:
    """No such model, no hub, or a folder that is no model's."""
    transformer()
    async with started(EmbeddingSettings(backend="sentence-transformers", model=model)) as embedding:
        with pytest.raises(SiltstoneError) as caught:
            await embedding.model()
    assert what in str(caught.value)
    assert str(caught.value).startswith("sentence-transformers cannot load embedding.model")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="it is installed")
async def test_without_its_package_a_transformer_says_what_to_install() -> None:
    async with started(EmbeddingSettings(backend="sentence-transformers")) as embedding:
        with pytest.raises(SiltstoneError, match=r"pip install 'siltstone\[sentence-transformers\]'"):
            await embedding.model()


# What is recorded of a transformer


def model_folder(folder: Path) -> Path:
    """Files like a model's."""
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "modules.json").write_text('[{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Normalize"}]')
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "1_Pooling" / "config.json").write_text('{"mean": true}')
    (folder / "README.md").write_text("about it")
    return folder


def test_a_folders_model_is_recorded_by_what_it_holds(tmp_path: Path) -> None:
    """Moved, or with another read-me, it is the same; with other weights or settings it is another."""
    folder = model_folder(tmp_path / "here")
    name = recorded_name(str(folder))
    assert name.startswith("sentence-transformers:")
    assert str(tmp_path) not in name
    moved = folder.rename(tmp_path / "there")
    (moved / "README.md").write_text("more about it")
    (moved / ".cache").write_text("{}")
    (moved / "onnx").mkdir()
    assert recorded_name(str(moved)) == name
    (moved / "1_Pooling" / "config.json").write_text('{"mean": false}')
    assert recorded_name(str(moved)) != name


def test_the_hubs_own_models_are_recorded_by_their_short_name() -> None:
    assert recorded_name("sentence-transformers/all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
    assert recorded_name("BAAI/bge-m3") == "BAAI/bge-m3"
