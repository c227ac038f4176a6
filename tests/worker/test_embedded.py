"""Embedding under a worker, on the real broker and shards: outages, deaths of the model's process, and its name."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from schemas.errors import EmbeddingUnavailable, SettingsError, ShardError
from schemas.settings import EmbeddingSettings, LifecycleSettings, Settings
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.bulk import producing
from streams.models.embedding.calibration import Scale
from streams.models.embedding.embedding import QUESTION_SECONDS
from streams.recall import answers, relevance
from streams.recall.ranking import Scores, fuse, lifted
from streams.runtime.backoff import Backoff
from streams.shards.user_shards import WAIT_SECONDS
from streams.telemetry.metrics import labelled
from tests.streams.models.embedding.test_embedding import transformer
from tests.streams.models.embedding.test_process import kill
from tests.support.making import line
from tests.support.openai_server import DIMENSIONS, Answer, OpenAIServer
from tests.support.quick_commands import siltstone
from tests.support.waiting import CLIENT_SECONDS, until

pytestmark = pytest.mark.own_model

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses, and no proxy and no hub."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("streams.models.embedding.embedding.BACKOFF", Backoff(first=0.01, longest=0.2))


def with_embedding(settings: Settings, **fields: object) -> Settings:
    return settings.model_copy(update={"embedding": EmbeddingSettings.model_validate(fields)})


def served_by(settings: Settings, base_url: str) -> Settings:
    """Settings whose embeddings come from a service."""
    return with_embedding(settings, backend="openai", api_key=KEY, base_url=base_url, model="embedder-1")


def api(worker: Siltstone) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{worker.api.port}", trust_env=False, timeout=CLIENT_SECONDS)


async def tell(worker: Siltstone, first: int, last: int) -> None:
    """Facts to remember."""
    async with api(worker) as client:
        for i in range(first, last):
            answer = await client.post("/v1/memories", json={"user_id": "ann", "text": f"Box {i} holds {FRUIT[i]}"})
            assert answer.status_code == 202


async def chat(worker: Siltstone, messages: int) -> None:
    async with producing(worker.settings.kafka) as producer:
        for i in range(messages):
            await producer.send(b"ann", line(i, "ann", ("user", "assistant")[i % 2], i))


FRUIT = ("apples", "bananas", "cherries", "dates", "elderberries", "figs", "grapes", "honeydews")


def written(worker: Siltstone) -> int:
    return labelled(worker.metrics.memories).get(("new",), 0)


async def search(worker: Siltstone, query: str) -> tuple[int, Any]:
    async with api(worker) as client:
        answer = await client.post("/v1/search", json={"user_id": "ann", "query": query, "top_k": 10})
    return answer.status_code, answer.json()


async def found(worker: Siltstone, query: str) -> list[str]:
    status, body = await search(worker, query)
    assert status == 200, body
    return [hit["memory"] for hit in body["results"]]


def recorded(settings: Settings) -> set[tuple[str, str]]:
    """Model and dimension, as the shards of a stopped worker have them."""
    models = set()
    for path in settings.data_dir.glob("shards/*/catalog.duckdb"):
        with duckdb.connect(str(path), read_only=True) as db:
            info = dict(db.execute("SELECT key, value FROM shard_info").fetchall())
            models.add((info["model"], info["dimension"]))
    return models


async def test_a_service_embeds_what_is_kept_and_what_is_asked(settings: Settings) -> None:
    """Its model and dimension are recorded; another model is a mismatch."""
    async with OpenAIServer() as server:
        served = served_by(settings, server.base_url)
        async with running.started(served) as worker:
            await running.until_ready(worker)
            await tell(worker, 0, 3)
            await until(lambda: written(worker) == 3, alive=worker)
            assert (await found(worker, "what does box 1 hold?"))[0] == "Box 1 holds bananas"
        assert recorded(served) == {("embedder-1", str(DIMENSIONS))}
        async with running.started(settings) as worker:
            with pytest.raises(ShardError, match=rf"come from embedder-1 \({DIMENSIONS} dimensions\).*reembed"):
                await running.until_ready(worker)


@pytest.mark.parametrize("answer", [Answer(status=503), Answer(fault="broken")], ids=["503", "broken"])
async def test_while_the_service_fails_events_wait_and_searches_say_why(
    settings: Settings, caplog: pytest.LogCaptureFixture, answer: Answer
) -> None:
    """The worker stays up, takes messages, and goes on by itself; nothing is lost, and the log is short."""
    async with OpenAIServer() as server, running.started(served_by(settings, server.base_url)) as worker:
        await running.until_ready(worker)
        await tell(worker, 0, 1)
        await until(lambda: written(worker) == 1, alive=worker)

        server.answering = lambda _: answer
        await tell(worker, 1, 5)
        await until(lambda: worker.shards.models.current._outage.reason, alive=worker)
        asked = len(server.received)
        status, body = await search(worker, "what does box 0 hold?")
        assert status == 503
        assert body["detail"].startswith(f"embedder-1 at {server.origin} does not embed")
        await tell(worker, 5, 8)
        await chat(worker, 20)
        await until(lambda: sum(labelled(worker.metrics.messages).values()) == 20, alive=worker)
        await until(lambda: len(server.received) > asked + 10, alive=worker)
        assert (written(worker), worker.hot.halted, worker.health.ready) == (1, None, True)
        assert worker.hot.lag()[worker.topics.long_term] > 0

        server.answering = lambda _: Answer()
        await until(lambda: written(worker) == 8, alive=worker)
        told, origin = {f"Box {i} holds {fruit}" for i, fruit in enumerate(FRUIT)}, server.origin
        assert set(await found(worker, "box")) == told
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len([one for one in warned if origin in one]) == 1, warned
    assert KEY not in caplog.text


@pytest.mark.slow
async def test_a_search_has_its_answer_in_time_while_the_service_hangs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 503 with the reason, before the API would give up by itself."""
    assert QUESTION_SECONDS < WAIT_SECONDS - 1
    async with OpenAIServer() as server, running.started(served_by(settings, server.base_url)) as worker:
        await running.until_ready(worker)
        await tell(worker, 0, 1)
        await until(lambda: written(worker) == 1, alive=worker)
        server.gate.clear()
        with monkeypatch.context() as patch:
            patch.setattr("streams.models.embedding.embedding.QUESTION_SECONDS", 0.5)
            status, body = await search(worker, "what does box 0 hold?")
        assert (status, body["detail"]) == (503, "the embedding model is busy, or being started; ask again")
        server.gate.set()
        assert await found(worker, "what does box 0 hold?")


@pytest.mark.slow
async def test_a_worker_that_stops_in_an_outage_leaves_the_events_to_the_next(settings: Settings) -> None:
    async with OpenAIServer() as server:
        served = served_by(settings, server.base_url)
        async with running.started(served) as worker:
            await running.until_ready(worker)
            server.answering = lambda _: Answer(status=503)
            await tell(worker, 0, 4)
            await until(lambda: worker.shards.models.current._outage.reason, alive=worker)
            await until(lambda: worker.hot.lag()[worker.topics.long_term] == 4, alive=worker)
        # The service still fails: a stop that waited for it would not have ended.
        server.answering = lambda _: Answer()
        async with running.started(served) as worker:
            await running.until_ready(worker)
            await until(lambda: written(worker) == 4, alive=worker)
            assert len(await found(worker, "box")) == 4


async def test_a_service_that_refuses_the_key_stops_the_start_with_one_line(settings: Settings) -> None:
    async with OpenAIServer(lambda _: Answer(status=401)) as server:
        kafka = settings.kafka
        result = await siltstone(
            "worker",
            *("--data", str(settings.data_dir), "--bootstrap-servers", kafka.bootstrap_servers, "--port", "0"),
            SILTSTONE_KAFKA__TOPIC_PREFIX=kafka.topic_prefix,
            SILTSTONE_KAFKA__GROUP_ID=kafka.group_id,
            SILTSTONE_KAFKA__PARTITIONS=str(kafka.partitions),
            SILTSTONE_EMBEDDING__BACKEND="openai",
            SILTSTONE_EMBEDDING__BASE_URL=server.base_url,
            SILTSTONE_EMBEDDING__API_KEY=KEY,
        )
        origin = server.origin
    assert result.returncode == 1
    said = f"text-embedding-3-small at {origin} does not embed (AuthenticationError, 401): correct the key"
    assert result.stderr.splitlines()[-1] == f"siltstone: {said}"
    assert KEY not in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
async def test_a_service_that_is_not_there_stops_the_start(settings: Settings) -> None:
    async with running.started(served_by(settings, "http://127.0.0.1:9/v1")) as worker:
        with pytest.raises(
            EmbeddingUnavailable, match=r"at http://127.0.0.1:9 does not embed \(APIConnectionError\)"
        ):
            await running.until_ready(worker)


def test_a_service_without_a_key_is_a_mistake_in_the_settings(settings: Settings) -> None:
    with pytest.raises(SettingsError, match=r"set embedding.api_key, or llm.api_key"):
        Siltstone(with_embedding(settings, backend="openai"))


@pytest.mark.slow
async def test_when_the_models_process_is_killed_nothing_is_lost(settings: Settings) -> None:
    """And searches go on."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await tell(worker, 0, 4)
        await until(lambda: written(worker) > 0, alive=worker)
        kill(worker.shards.models.current)
        await tell(worker, 4, 8)
        await until(lambda: written(worker) == 8, alive=worker)
        assert worker.hot.halted is None
        assert len(await found(worker, "what do the boxes hold?")) == 8


@pytest.mark.slow
async def test_memories_are_found_with_e5(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name and dimension are recorded, its cosine has its own weight, and English relevances are lifted."""
    shares, lifts = list[float](), list[float]()

    def noted(dense: Scores, lexical: Scores, scale: Scale, share: float) -> Scores:
        shares.append(share)
        return fuse(dense, lexical, scale, share)

    def noted_lift(values: Scores, lift: float) -> Scores:
        lifts.append(lift)
        return lifted(values, lift)

    monkeypatch.setattr(relevance, "fuse", noted)
    monkeypatch.setattr(answers, "lifted", noted_lift)
    settings = settings.model_copy(update={"lifecycle": LifecycleSettings(clock="wall")})
    small = with_embedding(settings, backend="e5")
    async with running.started(small) as worker:
        await running.until_ready(worker)
        await tell(worker, 0, 4)
        await until(lambda: written(worker) == 4, alive=worker)
        assert (await found(worker, "where are the dates?"))[0] == "Box 3 holds dates"
        assert (set(shares), set(lifts)) == ({0.7}, {0.5})
        lifts.clear()
        await found(worker, "dates 在哪里？")
    assert recorded(small) == {("multilingual-e5-small-q4", "384")}
    assert set(lifts) == {0.0}


@pytest.mark.slow
async def test_a_folders_model_may_move(settings: Settings, tmp_path: Path) -> None:
    """What is recorded in the shards is not its path, and what was kept is found from its new place."""
    settings = settings.model_copy(update={"lifecycle": LifecycleSettings(clock="wall")})
    here = tmp_path / "here"
    shutil.copytree(transformer(), here)
    folder = with_embedding(settings, backend="sentence-transformers", model=str(here))
    async with running.started(folder) as worker:
        await running.until_ready(worker)
        await tell(worker, 0, 4)
        await until(lambda: written(worker) == 4, alive=worker)
    assert recorded(folder) == {("sentence-transformers:9ef2182ceb52f812", "384")}
    there = here.rename(tmp_path / "there")
    moved = with_embedding(settings, backend="sentence-transformers", model=str(there))
    async with running.started(moved) as worker:
        await running.until_ready(worker)
        assert (await found(worker, "where are the dates?"))[0] == "Box 3 holds dates"
