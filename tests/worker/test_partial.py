"""While a partition comes back to its worker: how far it is, when to ask again, and what is there already."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas.settings import Settings
from streams.app import Siltstone
from streams.doors.cli import running
from streams.memory.agent import LongTermAgent
from streams.models.embedding.embedding import Embedding, Side, Vectors
from streams.shards import user_shards
from tests.support.api import api
from tests.support.making import START
from tests.support.quick_commands import siltstone
from tests.support.waiting import until, until_it_is

WORDS = ("walnuts", "cinnamon")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"partitions": 1})})


async def remember(worker: Siltstone, word: str) -> None:
    """It is in the shard, and the group has committed it: what is not is no part of the log's tail, but new."""
    body = {"user_id": "u", "text": f"I am allergic to {word}", "timestamp": START}
    async with api(worker) as client:
        assert (await client.post("/v1/memories", json=body)).status_code == 202

        async def known() -> bool:
            listed = (await client.get("/v1/memories", params={"user_id": "u"})).json()["memories"]
            return any(word in one["memory"] for one in listed)

        await until_it_is(known, alive=worker)
    await until(lambda: set(worker.health.lag().values()) == {0}, alive=worker)


@asynccontextmanager
async def at_work(settings: Settings) -> AsyncIterator[Siltstone]:
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        yield worker


async def a_disk_that_slept(settings: Settings, aside: Path) -> None:
    """It holds the first of two memories; the log has both."""
    shards = settings.data_dir / "shards"
    async with at_work(settings) as worker:
        await remember(worker, WORDS[0])
    shutil.copytree(shards, aside)
    async with at_work(settings) as worker:
        await remember(worker, WORDS[1])
    shutil.rmtree(shards)
    shutil.copytree(aside, shards)


async def asked(client: httpx.AsyncClient, **more: Any) -> tuple[int, dict[str, Any]]:
    body = {"user_id": "u", "query": "allergic", "touch": False, "include_all": True, **more}
    answer = await client.post("/v1/search", json=body)
    return answer.status_code, answer.json()


def words(results: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(word for one in results for word in WORDS if word in one["memory"])


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """What is written is not embedded before this is set; questions are."""
    gate, embed = asyncio.Event(), Embedding.embed

    async def patiently(model: Embedding, texts: Sequence[str], of: Side) -> Vectors:
        if of == "document":
            await gate.wait()
        return await embed(model, texts, of)

    gate.set()
    monkeypatch.setattr(Embedding, "embed", patiently)
    return gate


async def test_what_is_there_answers_while_the_logs_tail_is_read(
    settings: Settings, tmp_path: Path, held: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_disk_that_slept(settings, tmp_path / "aside")
    held.clear()
    async with running.started(settings) as worker, api(worker) as client:
        await until(lambda: any(one.of_all for one in worker.health.behind()), alive=worker)

        ready = await client.get("/readyz")
        assert (ready.status_code, ready.headers["retry-after"]) == (503, "1")
        (behind,) = ready.json()["coming_back"]
        assert behind == {
            "partition": 0,
            "part": "memories",
            "doing": "catching up",
            "done": 0,
            "of_all": 1,
            "unit": "records",
            "eta_seconds": None,
        }
        labels = 'doing="catching up",part="memories",partition="0"'
        assert f"siltstone_coming_back_of_all{{{labels}}} 1.0" in (await client.get("/metrics")).text
        assert (await client.get("/v1/stats/pipeline")).json()["coming_back"] == [behind]

        with monkeypatch.context() as patch:
            patch.setattr(user_shards, "WAIT_SECONDS", 0.5)
            status, answer = await asked(client)
        assert status == 503
        assert answer["detail"] == ("shard 0: it is coming back: memories: catching up, 0 of 1 records; ask again")

        status, answer = await asked(client, partial="allow")
        assert (status, answer["partial"], answer["behind"]) == (200, True, [behind])
        assert words(answer["results"]) == [WORDS[0]]
        by_parameter = await client.post("/v1/search?partial=allow", json={"user_id": "u", "query": "x"})
        assert by_parameter.json()["partial"] is True
        asking: dict[str, str | bool] = {
            "user_id": "u",
            "session_id": "s",
            "q": "allergic",
            "touch": False,
            "partial": "allow",
        }
        context = (await client.get("/v1/context", params=asking)).json()
        assert (context["partial"], words(context["memories"])) == (True, [WORDS[0]])
        listed = (await client.get("/v1/memories", params={"user_id": "u", "partial": "allow"})).json()
        assert (listed["partial"], listed["total"]) == (True, 1)
        profile = (await client.get("/v1/profile", params={"user_id": "u", "partial": "allow"})).json()
        assert (profile["partial"], profile["behind"]) == (True, [behind])
        one = f"/v1/memories/{listed['memories'][0]['id']}"
        shown = (await client.get(one, params={"user_id": "u", "touch": False, "partial": "allow"})).json()
        assert (shown["partial"], shown["behind"]) == (True, [behind])
        unknown = "/v1/memories/00000000-0000-0000-0000-000000000000"
        answer_to = await client.get(unknown, params={"user_id": "u", "partial": "allow"})
        assert answer_to.status_code == 503  # it may be among what is not back
        assert (await client.get(one, params={"user_id": "u", "partial": "perhaps"})).status_code == 422

        url = f"http://127.0.0.1:{worker.api.port}"
        said = await siltstone("search", "allergic", "--user", "u", "--partial", "--url", url, COLUMNS="200")
        assert "Not all data is recovered yet: partition 0: memories: catching up, 0 of 1 records" in said.stdout

        held.set()
        await running.until_ready(worker)
        status, answer = await asked(client, partial="allow")
        assert (status, answer["partial"], answer["behind"]) == (200, False, [])
        assert words(answer["results"]) == sorted(WORDS)
        status, answer = await asked(client)
        assert answer.keys() == {"results", "reference_date", "better_elsewhere"}
        ready = await client.get("/readyz")
        said_now = ready.json()
        assert (said_now["ready"], said_now["coming_back"], said_now["eta_seconds"]) == (True, [], None)
        assert "siltstone_coming_back_done{" not in (await client.get("/metrics")).text


async def test_memories_answer_while_windows_are_read_back(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exchanges and notes are left out meanwhile; without `partial=allow` nobody gets an incomplete answer."""
    async with at_work(settings) as worker:
        await remember(worker, WORDS[0])
    gate, recovered = asyncio.Event(), Siltstone.__init__

    def slow(worker: Siltstone, settings: Settings) -> None:
        recovered(worker, settings)
        short_term = worker.intake.short_term
        back: Callable[[], Any] = short_term.recovered

        async def late() -> None:
            await gate.wait()
            await back()

        short_term.recovered = late  # type: ignore[method-assign]

    monkeypatch.setattr(Siltstone, "__init__", slow)
    worker = Siltstone(settings)
    starting = asyncio.create_task(worker.start())
    try:
        await until(lambda: bool(worker.shards.partitions()) and worker.shards.ready)
        async with api(worker) as client:
            with monkeypatch.context() as patch:
                patch.setattr(user_shards, "WAIT_SECONDS", 0.5)
                status, answer = await asked(client)
            assert status == 503
            assert "windows: catching up" in answer["detail"]
            status, answer = await asked(client, partial="allow")
            assert (status, answer["partial"], words(answer["results"])) == (200, True, [WORDS[0]])
            assert {one["part"] for one in answer["behind"]} == {"memories", "windows"}
            asking: dict[str, str | bool] = {
                "user_id": "u",
                "session_id": "s",
                "q": "allergic",
                "touch": False,
                "partial": "allow",
            }
            context = (await client.get("/v1/context", params=asking)).json()
            assert (context["partial"], context["exchanges"], context["notes"]) == (True, [], [])
            assert words(context["memories"]) == [WORDS[0]]
            gate.set()
            await starting
            await running.until_ready(worker)
            status, answer = await asked(client, partial="allow")
            assert (status, answer["partial"]) == (200, False)
    finally:
        gate.set()
        await starting
        await worker.stop()


async def test_offsets_that_the_log_lacks_leave_nothing_behind(settings: Settings) -> None:
    """A shard is filled up past what a transaction's marker takes, too: that is not a return."""
    async with at_work(settings) as worker:
        await remember(worker, WORDS[0])
        agent: LongTermAgent = worker.long_term
        await agent._fill_up(0, 3)
        assert worker.health.behind() == []
