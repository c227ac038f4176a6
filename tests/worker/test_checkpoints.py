"""A worker's checkpoints: taken, and given back to one with an empty disk."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from schemas.settings import CheckpointsSettings, Settings
from streams.app import Siltstone
from streams.doors.cli import running
from streams.models.embedding.embedding import Side, Vectors
from streams.shards.restore.checkpoint_job import CheckpointJob
from tests.support.api import api
from tests.support.waiting import until, until_it_is

pytestmark = pytest.mark.slow

TEXTS = [f"{color} is the colour of {thing}" for color in ("red", "green") for thing in ("doors", "boats", "bikes")]


def checkpointed(settings: Settings, store: Path, **fields: Any) -> Settings:
    checkpoints = CheckpointsSettings(url=store.as_uri(), seconds=1000, **fields)
    return settings.model_copy(update={"checkpoints": checkpoints})


async def remember(worker: Siltstone, texts: list[str], user: str = "u") -> None:
    async with api(worker) as http:
        for text in texts:
            answer = await http.post("/v1/memories", json={"user_id": user, "text": text})
            assert answer.status_code == 202, answer.text

    async def all_are_in() -> bool:
        held = await worker.service.of_user(user)
        return {memory.text for memory in held} >= set(texts)

    await until_it_is(all_are_in, alive=worker)


async def found(worker: Siltstone, query: str, user: str = "u") -> list[tuple[str, float]]:
    body = {"user_id": user, "query": query, "top_k": 20, "include_all": True, "touch": False}
    async with api(worker) as http:
        answer = await http.post("/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    return [(hit["memory"], round(hit["relevance"], 4)) for hit in answer.json()["results"]]


def embedded(worker: Siltstone, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the worker's model is asked to embed for the store from now on."""
    texts, embedding = list[str](), worker.shards.models.current
    embed = embedding.embed

    async def watched(asked: Sequence[str], of: Side) -> Vectors:
        texts.extend(asked)
        return await embed(asked, of)

    monkeypatch.setattr(embedding, "embed", watched)
    return texts


async def not_at_all(job: CheckpointJob) -> None:
    """In the place of the last checkpoint: the worker ends as one that is killed."""
    job._closing = True


async def outcomes(worker: Siltstone) -> set[str]:
    """Of a checkpoint of each partition, taken now."""
    assert worker.checkpointing.job is not None
    return {done.outcome for done in await worker.checkpointing.job.now()}


def lose_disk(settings: Settings) -> None:
    for folder in ("shards", "windows"):
        shutil.rmtree(settings.data_dir / folder)


@pytest.fixture
def suddenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers take no last checkpoint."""
    monkeypatch.setattr(CheckpointJob, "last", not_at_all)


@pytest.mark.usefixtures("suddenly")
async def test_a_worker_with_an_empty_disk_answers_the_same_and_embeds_the_tail_alone(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = checkpointed(settings, tmp_path / "store")
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await remember(worker, TEXTS)
        assert await outcomes(worker) == {"taken"}
        assert await outcomes(worker) == {"unchanged"}
        await remember(worker, ["blue is the colour of the sea"])
        before = await found(worker, "colour of the doors")
    lose_disk(settings)
    worker = Siltstone(settings)
    texts = embedded(worker, monkeypatch)
    try:
        await worker.start()
        await running.until_ready(worker)
        assert texts == ["blue is the colour of the sea"]
        assert await found(worker, "colour of the doors") == before
        assert len(before) == 7
    finally:
        await worker.stop()


async def test_a_worker_that_stops_leaves_nothing_to_be_embedded_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = checkpointed(settings, tmp_path / "store")
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await remember(worker, TEXTS)
    lose_disk(settings)
    worker = Siltstone(settings)
    texts = embedded(worker, monkeypatch)
    try:
        await worker.start()
        await running.until_ready(worker)
        assert len(await worker.service.of_user("u")) == len(TEXTS)
        assert texts == []
    finally:
        await worker.stop()


@pytest.mark.usefixtures("suddenly")
async def test_what_was_forgotten_since_does_not_come_back(settings: Settings, tmp_path: Path) -> None:
    """The log has the command; before it is applied again, nobody gets an answer."""
    settings = checkpointed(settings, tmp_path / "store")
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await remember(worker, TEXTS)
        await remember(worker, TEXTS[:1], "v")
        await outcomes(worker)
        async with api(worker) as http:
            assert (await http.delete("/v1/memories", params={"user_id": "u"})).status_code in (200, 202)

        async def all_gone() -> bool:
            return not await worker.service.of_user("u")

        await until_it_is(all_gone, alive=worker)
    lose_disk(settings)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        assert await worker.service.of_user("u") == ()
        assert len(await worker.service.of_user("v")) == 1


async def test_windows_come_back_with_their_shard(settings: Settings, tmp_path: Path) -> None:
    """Their changelogs are read from where the checkpoint ends."""
    settings = checkpointed(settings, tmp_path / "store")
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        async with api(worker) as http:
            for n in range(4):
                said = {"user_id": "u", "session_id": "s", "role": "user", "content": f"message {n}"}
                assert (await http.post("/v1/messages", json=said)).status_code == 202
        await until(lambda: worker.metrics.messages._value.get() == 4, alive=worker)
        await until(lambda: set(worker.health.lag().values()) == {0}, alive=worker)
        assert worker.checkpointing.job is not None
        await remember(worker, TEXTS[:1])
        shown = worker.service.sessions.window("u", "s", None)
    lose_disk(settings)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        stores = worker.context.stores
        assert all((stores.folder / str(partition)).exists() for partition in stores.partitions())
        assert worker.service.sessions.window("u", "s", None) == shown
        partition = worker.context.partition_of("u")
        (place, *_) = [one for one in stores._open[partition].state.places.values() if one.rows]
        assert place.offset > 0
