"""Three brokers that fail one after the other beside a worker: nothing is lost, nothing doubled.

Topics with three replicas, of which two have a record before it is acknowledged.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from schemas.settings import Settings
from streams.cli.ingest import producing
from streams.clients.broker import ensure_topics
from tests.crash.lives import idle, living, stop, until_idle
from tests.kafka.cluster import Cluster
from tests.making import line, until
from tests.ports import free_port
from tests.workers import asked, sources

USERS, MESSAGES = 20, 30


@pytest.fixture
def on_three(three: Cluster, settings: Settings, tmp_path: Path) -> Settings:
    name = uuid.uuid4().hex[:8]
    kafka = three.settings(settings.kafka).model_copy(update={"topic_prefix": f"{name}.", "group_id": name})
    return settings.model_copy(update={"kafka": kafka, "data_dir": tmp_path / "three"})


async def a_broker_is_killed(three: Cluster) -> None:
    """Every third partition loses its leader, and perhaps the group its coordinator."""
    three.nodes[0].kill()
    await asyncio.sleep(3)
    three.nodes[0].start()
    await asyncio.to_thread(three.wait_until_up)


async def a_broker_is_paused(three: Cluster) -> None:
    """For longer than a session of the worker's, and than its own with the controller."""
    three.nodes[1].pause()
    await asyncio.sleep(8)
    three.nodes[1].go_on()


async def brokers_are_restarted_in_turn(three: Cluster) -> None:
    for node in three.nodes:
        await asyncio.to_thread(node.stop)
        node.start()
        await asyncio.to_thread(three.wait_until_up)


@pytest.mark.parametrize("fault", [a_broker_is_killed, a_broker_is_paused, brokers_are_restarted_in_turn])
async def test_nothing_is_lost_or_doubled_when(
    three: Cluster, on_three: Settings, fault: Callable[[Cluster], Awaitable[None]]
) -> None:
    await ensure_topics(on_three.kafka)
    port = free_port()
    with living(on_three, port) as worker:
        await until(lambda: asked(port, "/readyz").get("ready"), 90)
        said, _ = await asyncio.gather(say(on_three), fault(three))
        await until(lambda: idle(port), 120)
        await until_idle(port)
        stop(worker)
    counted = sources(on_three)
    assert said - counted.keys() == set()
    assert {message: times for message, times in counted.items() if times != 1} == {}


async def say(settings: Settings) -> set[str]:
    """Over some seconds, so that the fault is in the middle; the ids of what was acknowledged, which is all of it."""
    users = [f"user-{n}" for n in range(USERS)]
    async with producing(settings.kafka) as producer:
        for i in range(MESSAGES):
            for user in users:
                await producer.send(user.encode(), line(i, user, ("user", "assistant")[i % 2], i))
            await asyncio.sleep(0.3)
        for user in users:
            await producer.send(user.encode(), line(0, user, "user", MESSAGES, type="session_end"))
    return {f"{user}-{i}" for user in users for i in range(MESSAGES)}
