"""Short-term memory through the worker: what is read back, when it becomes a memory, and how it starts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import orjson
import pytest

from schemas.settings import Settings
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.bulk import producing
from streams.models.embedding.process import EmbeddingProcess
from streams.telemetry.metrics import labelled
from tests.support.api import api
from tests.support.making import START, line
from tests.support.quick_commands import siltstone
from tests.support.waiting import until


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[Siltstone]:
    async with running.started(settings) as siltstone:
        yield siltstone


async def say(worker: Siltstone, *records: bytes) -> None:
    async with producing(worker.settings.kafka) as producer:
        for record in records:
            await producer.send(orjson.loads(record)["user_id"].encode(), record)


async def heard(worker: Siltstone, messages: int) -> None:
    await until(lambda: sum(labelled(worker.metrics.messages).values()) == messages, alive=worker)


async def test_the_newest_ten_exchanges_are_read_in_time_order(worker: Siltstone) -> None:
    """Twelve exchanges; an answer that the log holds out of its turn stands where its time says."""
    said = [
        line(2 * i + j, "ann", role, at=100 * i + 5 * j)
        for i in range(12)
        for j, role in enumerate(("user", "assistant"))
    ]
    said[21], said[22] = said[22], said[21]
    await say(worker, *said)
    await heard(worker, 24)
    async with api(worker) as client:
        answer = await client.get("/v1/sessions/ann-s/exchanges", params={"user_id": "ann"})
    read = [[message["message_id"] for message in exchange["messages"]] for exchange in answer.json()["exchanges"]]
    assert read == [[f"ann-{2 * i}", f"ann-{2 * i + 1}"] for i in range(2, 12)]


async def test_an_expired_exchange_is_never_read(worker: Siltstone) -> None:
    """A day after its last message, by the event clock, which another user's message moves on."""
    await say(worker, line(0, "ann", "user", at=0), line(0, "bob", "user", at=86_399))
    await heard(worker, 2)
    async with api(worker) as client:
        before = await client.get("/v1/sessions/ann-s/exchanges", params={"user_id": "ann"})
        await say(worker, line(1, "bob", "user", at=86_400))
        await heard(worker, 3)
        after = await client.get("/v1/sessions/ann-s/exchanges", params={"user_id": "ann"})
    assert (len(before.json()["exchanges"]), after.json()["exchanges"]) == (1, [])


async def test_what_the_user_asks_to_remember_is_a_memory_at_once(worker: Siltstone) -> None:
    """When its exchange closes; nine others before it wait for their turn."""
    said = [line(i, "ann", "user" if i % 2 == 0 else "assistant", at=10 * i) for i in range(4)]
    asked = line(4, "ann", "user", at=50, content="帮我记住，我的车停在B2层")
    await say(worker, *said, asked, line(5, "ann", "assistant", at=55), line(6, "ann", "user", at=60))
    await until(lambda: labelled(worker.metrics.memories).get(("new",)) == 1, alive=worker)
    async with api(worker) as client:
        memories = {"user_id": "ann", "query": "车停在哪里", "include_short_term": False}
        (found,) = (await client.post("/v1/search", json=memories)).json()["results"]
        shown = (await client.get(f"/v1/memories/{found['id']}", params={"user_id": "ann"})).json()
    assert (found["importance"], found["metadata"]["promotion"]["reason"]) == (100, "forced")
    assert "B2" in found["memory"]
    assert shown["pinned"] is True


async def test_a_session_that_idles_by_the_wall_clock_does_not_wait_for_its_next_message(settings: Settings) -> None:
    memory = settings.memory.model_copy(update={"exchange_gap_seconds": 1, "session_idle_seconds": 2})
    async with running.started(settings.model_copy(update={"memory": memory})) as worker:
        await say(worker, line(0, "ann", "user", at=0, content="My name is Ann, I live in Oslo and I love skiing"))
        await until(lambda: labelled(worker.metrics.memories).get(("new",)) == 1, alive=worker)


async def test_several_agents_of_one_session_share_its_window(worker: Siltstone) -> None:
    said = [
        line(0, "ann", "user", at=0, content="I love tea", name="Ann"),
        line(1, "ann", "assistant", at=5, content="Noted.", agent_id="planner", name="Planner"),
        line(2, "ann", "assistant", at=6, content="Green or black?", agent_id="shopper", name="Shopper"),
    ]
    ended = orjson.dumps(
        {"type": "session_end", "user_id": "ann", "session_id": "ann-s", "timestamp": START + 60_000}
    )
    await say(worker, *said, ended)
    await until(lambda: labelled(worker.metrics.memories).get(("new",)) == 1, alive=worker)
    async with api(worker) as client:
        (found,) = (await client.post("/v1/search", json={"user_id": "ann", "query": "tea"})).json()["results"]
    assert found["memory"] == "Ann: I love tea\nPlanner: Noted.\nShopper: Green or black?"


def _wait_for(file: Path) -> None:
    """Runs in the model's process."""
    while not file.exists():
        time.sleep(0.05)


@pytest.mark.own_model
async def test_the_service_is_up_before_the_model_is(settings: Settings, tmp_path: Path) -> None:
    """The API answers meanwhile, and says what it waits for."""
    worker = Siltstone(settings)
    process = cast(EmbeddingProcess, worker.shards.models.current._backend)._process
    waiting = asyncio.ensure_future(process.call(_wait_for, tmp_path / "go"))
    try:
        await worker.start()
        async with api(worker) as client:
            assert (await client.get("/healthz")).status_code == 200
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.json()["ready"]) == (503, False)
            assert "the embedding model is being loaded" in answer.json()["waiting_for"]
            (tmp_path / "go").touch()
            await running.until_ready(worker)
            assert (await client.get("/readyz")).status_code == 200
    finally:
        (tmp_path / "go").touch()
        await waiting
        await worker.stop()


async def test_the_largest_exchange_survives_a_restart(settings: Settings) -> None:
    """16 messages with as much content and metadata as is allowed: more than a broker's default for a record."""
    said = [line(i, "ann", "user", at=i, content="长" * 10_900, metadata={"note": "x" * 32_000}) for i in range(17)]
    async with running.started(settings) as worker:
        await say(worker, *said)
        await heard(worker, 17)
    async with running.started(settings) as worker:
        ((partition, session),) = worker.intake.windows.all_sessions()
        (exchange,) = worker.intake.windows.window(partition, session)
    assert (len(exchange.messages), len(session.open)) == (16, 1)


async def test_what_is_said_is_found_at_once_and_ends_when_its_session_is_said_to_be_over(worker: Siltstone) -> None:
    """On the command line: found in its window, left out, and a memory after `end-session`."""
    told = "I just moved to Oslo and I work as a structural engineer"
    url = f"http://127.0.0.1:{worker.api.port}"

    async def states(*words: str) -> list[str]:
        ran = await siltstone("search", "Where does Ann work?", "--user", "ann", "--json", "--url", url, *words)
        assert ran.returncode == 0, ran.stderr
        return [hit["state"] for hit in orjson.loads(ran.stdout)["results"]]

    await say(worker, line(0, "ann", "user", at=0, content=told))
    await heard(worker, 1)
    assert await states() == await states("--state", "short_term") == ["short_term"]
    assert await states("--no-short-term") == []
    shown = await siltstone("context", "work?", "--user", "ann", "--session", "other", "--url", url)
    assert told in shown.stdout
    ended = await siltstone("end-session", "--user", "ann", "--session", "ann-s", "--at", str(START), "--url", url)
    assert (ended.returncode, "Session ann-s of ann ends" in ended.stdout) == (0, True)
    await until(lambda: labelled(worker.metrics.memories).get(("new",)) == 1, alive=worker)
    assert await states() == ["active"]
