"""A running worker puts the hits of its searches in a reranker's order: from the broker to the answer over HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from schemas.settings import RerankSettings, Settings
from streams.telemetry.metrics import labelled
from tests.streams.models.reranking.cross_encoders import made, scored
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.waiting import until_it_is
from tests.worker.test_reembed import working

TEXTS = ["Ann does live in Oslo", "The train to Oslo was late", "My cat is called Pepper"]
QUESTION = "Does Ann live in Oslo?"


async def remembered(http: httpx.AsyncClient) -> None:
    for text in TEXTS:
        body = {"user_id": "ann", "text": text, "importance": 80}
        (await http.post("/v1/memories", json=body, params={"wait": "applied"})).raise_for_status()


async def found(http: httpx.AsyncClient) -> tuple[list[str], list[object]]:
    """The hits' texts, best first, and what the reranker made of each of them."""
    body = {"user_id": "ann", "query": QUESTION, "explain": True}
    hits = (await http.post("/v1/search", json=body)).raise_for_status().json()["results"]
    relevance = [hit["relevance"] for hit in hits]
    assert relevance == sorted(relevance, reverse=True)
    return [hit["memory"] for hit in hits], [hit["explain"].get("rerank_score") for hit in hits]


@pytest.mark.wired
async def test_a_service_decides_and_its_failure_changes_nothing(settings: Settings, server: OpenAIServer) -> None:
    rerank = RerankSettings(
        backend="service",
        model="judge-1",
        api_key=SecretStr("sk-test"),
        base_url=server.base_url,
        timeout_seconds=8,
    )
    async with working(settings.model_copy(update={"rerank": rerank})) as (worker, http):
        await remembered(http)
        server.script(Answer(status=503))
        before, none = await found(http)
        assert none == [None, None, None]
        order = [TEXTS[2], TEXTS[0], TEXTS[1]]
        server.answering = lambda request: Answer(
            body=b'{"results": [%s]}'
            % b", ".join(
                b'{"index": %d, "relevance_score": %d}' % (place, 9 - order.index(text))
                for place, text in enumerate(request.documents)
            )
        )
        assert await found(http) == (order, [9.0, 8.0, 7.0])
        assert order != before
        assert labelled(worker.metrics.rerank) == {("failed",): 1, ("done",): 1}
        metrics = (await http.get("/metrics")).text
        assert 'siltstone_rerank_total{outcome="done"} 1.0' in metrics


@pytest.mark.slow
@pytest.mark.wired
async def test_a_cross_encoder_in_its_process_decides(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is loaded while the worker is ready; searches do not wait for that."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model = made(tmp_path / "model")
    expected = dict(zip(TEXTS, scored(model, QUESTION, TEXTS), strict=True))
    rerank = RerankSettings(model=str(model), timeout_seconds=8)
    async with working(settings.model_copy(update={"rerank": rerank})) as (worker, http):
        await remembered(http)

        async def reranked() -> bool:
            await found(http)
            return ("done",) in labelled(worker.metrics.rerank)

        await until_it_is(reranked)
        texts, scores = await found(http)
        assert texts == sorted(TEXTS, key=lambda text: -expected[text])
        assert scores == pytest.approx([expected[text] for text in texts], abs=1e-5)
