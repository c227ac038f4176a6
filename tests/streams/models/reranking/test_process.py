"""A local reranker: a real cross-encoder in its process, loading, busy, killed, or unable to load."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from schemas.errors import SiltstoneError
from schemas.settings import RerankSettings
from streams.models.reranking import process as rerank_process
from streams.models.reranking.backends import NotScored
from streams.models.reranking.process import RerankProcess, cross_encoder
from streams.models.reranking.reranker import Reranker
from streams.runtime.backoff import Backoff
from streams.telemetry.metrics import Metrics, labelled
from tests.streams.models.reranking.cross_encoders import made, scored
from tests.support.waiting import until

QUESTION = "Where does Ann live?"
TEXTS = ["Ann live in Oslo.", "The train was late.", "My cat is called Pepper."]

WITHOUT_PACKAGE = """
import sys
sys.modules["sentence_transformers"] = None
from streams.models.reranking.process import cross_encoder
cross_encoder("cross-encoder/ms-marco-MiniLM-L6-v2")
"""


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inherited by the model's process."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(rerank_process, "BACKOFF", Backoff(0.01, 0.01))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@contextlib.asynccontextmanager
async def started(model: Path, metrics: Metrics) -> AsyncIterator[Reranker]:
    reranker = Reranker(RerankSettings(model=str(model), timeout_seconds=8), metrics)
    reranker.start()
    try:
        yield reranker
    finally:
        await reranker.stop()


def process_of(reranker: Reranker) -> RerankProcess:
    return cast(RerankProcess, reranker._backend)


async def loaded(reranker: Reranker) -> None:
    await until(lambda: process_of(reranker)._waiting is None)


@pytest.mark.slow
async def test_a_cross_encoder_scores_each_text_beside_the_question(tmp_path: Path, metrics: Metrics) -> None:
    """As the library does in this process; no caller waits while it is loaded."""
    model = made(tmp_path / "model")
    async with started(model, metrics) as reranker:
        assert await reranker.scores(QUESTION, TEXTS) is None
        assert labelled(metrics.rerank) == {("late",): 1}
        await loaded(reranker)
        scores = await reranker.scores(QUESTION, TEXTS)
        turned = await reranker.scores(QUESTION, TEXTS[::-1])
    assert scores is not None
    assert turned is not None
    assert scores == pytest.approx(scored(model, QUESTION, TEXTS), abs=1e-5)
    assert scores == pytest.approx(turned[::-1], abs=1e-5)
    assert len({round(score, 4) for score in scores}) == 3
    assert labelled(metrics.rerank) == {("late",): 1, ("done",): 2}


@pytest.mark.slow
async def test_texts_longer_than_the_model_reads_are_scored(tmp_path: Path, metrics: Metrics) -> None:
    async with started(made(tmp_path / "model"), metrics) as reranker:
        await loaded(reranker)
        scores = await reranker.scores("where " * 2_000, ["oslo " * 2_000, "\ud800 请记住", "?"])
        assert scores is not None
        assert len(scores) == 3


@pytest.mark.slow
async def test_a_killed_process_is_started_again(
    tmp_path: Path, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    async with started(made(tmp_path / "model"), metrics) as reranker:
        await loaded(reranker)
        before = await reranker.scores(QUESTION, TEXTS)
        first = process_of(reranker)._process.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert await reranker.scores(QUESTION, TEXTS) is None
        await loaded(reranker)
        assert await reranker.scores(QUESTION, TEXTS) == before
        assert process_of(reranker)._process.pid not in (None, first)
    assert labelled(metrics.rerank) == {("done",): 2, ("failed",): 1}
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["searches are not reranked for now: the reranker's process has died; it is started again"]


@pytest.mark.slow
async def test_who_gives_up_while_waiting_is_not_scored(tmp_path: Path, metrics: Metrics) -> None:
    """So a model that is too slow for its searches does not fall behind more and more."""
    async with started(made(tmp_path / "model"), metrics) as reranker:
        await loaded(reranker)
        process = process_of(reranker)
        pid = process._process.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            begun, *waiting = [asyncio.ensure_future(process.scores(QUESTION, TEXTS)) for _ in range(5)]
            await asyncio.sleep(0)
            for one in (begun, *waiting):
                one.cancel()
            await asyncio.wait((begun, *waiting))
            assert process._place.locked(), "the process still has the first call"
        finally:
            os.kill(pid, signal.SIGCONT)
        assert await reranker.scores(QUESTION, TEXTS) is not None
        assert not process._place.locked()


@pytest.mark.slow
async def test_a_classifier_is_no_reranker(tmp_path: Path, metrics: Metrics) -> None:
    model = made(tmp_path / "model", labels=3)
    async with started(model, metrics) as reranker:
        await until(lambda: process_of(reranker)._failures > 0)
        with pytest.raises(NotScored, match=f"rerank.model {model} is no reranker: it gives no single score") as told:
            await process_of(reranker).scores(QUESTION, TEXTS)
        assert not told.value.late


@pytest.mark.slow
async def test_a_model_that_comes_later_is_loaded_then(tmp_path: Path, metrics: Metrics) -> None:
    """Its folder, or the model hub, was away at the start."""
    async with started(tmp_path / "model", metrics) as reranker:
        await until(lambda: process_of(reranker)._failures > 1)
        assert await reranker.scores(QUESTION, TEXTS) is None
        assert labelled(metrics.rerank) == {("failed",): 1}
        whole = made(tmp_path / "unseen")
        whole.rename(tmp_path / "model")
        await loaded(reranker)
        assert await reranker.scores(QUESTION, TEXTS) is not None


@pytest.mark.slow
async def test_it_may_be_closed_at_any_time(tmp_path: Path, metrics: Metrics) -> None:
    """While it is loaded, and during a call; no process is left, and none is started again."""
    model = made(tmp_path / "model")
    async with started(model, metrics):
        pass
    async with started(model, metrics) as reranker:
        await loaded(reranker)
        pid = process_of(reranker)._process.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        asked = asyncio.ensure_future(process_of(reranker).scores(QUESTION, TEXTS))
        await asyncio.sleep(0)
    with pytest.raises(NotScored, match="has died"):
        await asked
    assert process_of(reranker)._process.pid == pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SiltstoneError, match=r"cannot load rerank\.model: there is no folder .*/nowhere; correct"):
        cross_encoder(str(tmp_path / "nowhere"))


@pytest.mark.slow
def test_a_missing_package_is_named_with_its_command() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PACKAGE], capture_output=True, text=True, check=False)
    assert "rerank.backend is `sentence-transformers`, but its package is missing: pip install" in done.stderr
