"""Three brokers and workers that fail while messages come: nothing is lost, nothing doubled.

Topics with three replicas, of which two have a record before it is acknowledged.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from schemas.settings import Settings
from schemas.topics import Topics
from streams.kafka.clients.broker import ensure_topics
from streams.kafka.clients.producing import started_producer
from tests.crash.lives import idle, living, stop, until_idle
from tests.kafka.cluster import Cluster, Node
from tests.support.groups import SOON_MISSED
from tests.support.making import line
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.workers import asked, sources

USERS, MESSAGES = 20, 30
#: For how long a producer tries, as Kafka's own do by default: nothing is said twice, and brokers may be away.
DELIVERY_MS = 120_000

Worker = subprocess.Popen[bytes]

pytestmark = pytest.mark.soak


@pytest.fixture
def on_three(three: Cluster, settings: Settings, tmp_path: Path) -> Settings:
    name = uuid.uuid4().hex[:8]
    of_its_own = {"topic_prefix": f"{name}.", "group_id": name, **SOON_MISSED}
    kafka = three.settings(settings.kafka).model_copy(update=of_its_own)
    return settings.model_copy(update={"kafka": kafka, "data_dir": tmp_path / "three"})


async def a_broker_is_killed(three: Cluster, worker: Worker) -> None:
    """Every third partition loses its leader, and perhaps the group its coordinator."""
    three.nodes[0].kill()
    await asyncio.sleep(3)
    await started_again(three, three.nodes[0])


async def a_broker_is_paused(three: Cluster, worker: Worker) -> None:
    """For longer than a session of the worker's, and than its own with the controller."""
    three.nodes[1].pause()
    await asyncio.sleep(15)
    three.nodes[1].go_on()


async def brokers_are_restarted_in_turn(three: Cluster, worker: Worker) -> None:
    for node in three.nodes:
        await asyncio.to_thread(node.stop)
        node.start()
        await asyncio.to_thread(three.wait_until_up)


async def the_controller_is_killed(three: Cluster, worker: Worker) -> None:
    leader = await asyncio.to_thread(three.controller)
    leader.kill()
    await asyncio.sleep(3)
    await started_again(three, leader)


async def all_brokers_are_killed(three: Cluster, worker: Worker) -> None:
    for node in three.nodes:
        node.kill()
    await asyncio.sleep(3)
    await started_again(three, *three.nodes)


async def two_brokers_are_away(three: Cluster, worker: Worker) -> None:
    """Nothing can be written: there are fewer replicas than there must be, and no controller."""
    away = three.nodes[0], three.nodes[2]
    for node in away:
        node.kill()
    await asyncio.sleep(30)
    await started_again(three, *away)


async def the_worker_is_paused(three: Cluster, worker: Worker) -> None:
    """The group has it for dead; its partitions are nobody's, and then its own again."""
    worker.send_signal(signal.SIGSTOP)
    await asyncio.sleep(20)
    worker.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(
    "fault",
    [
        a_broker_is_killed,
        a_broker_is_paused,
        brokers_are_restarted_in_turn,
        the_controller_is_killed,
        all_brokers_are_killed,
        two_brokers_are_away,
        the_worker_is_paused,
    ],
)
async def test_nothing_is_lost_or_doubled_when(
    three: Cluster, on_three: Settings, fault: Callable[[Cluster, Worker], Awaitable[None]]
) -> None:
    await ensure_topics(on_three.kafka)
    port = free_port()
    with living(on_three, port) as worker:
        await until(lambda: asked(port, "/readyz").get("ready"), alive=worker)
        saying = asyncio.create_task(say(on_three))
        await until(lambda: remembered(port), alive=worker)
        await fault(three, worker)
        said = await saying
        await until(lambda: idle(port), alive=worker)
        await until_idle(worker, on_three.kafka)
        stop(worker)
    assert_once_each(on_three, said)


async def nothing_else_happens(three: Cluster) -> None:
    """The take-over is the fault."""


async def brokers_fall_silent_in_turn(three: Cluster) -> None:
    """Each for longer than a session: the group's coordinator moves, and moves again."""
    for node in three.nodes:
        node.pause()
        await asyncio.sleep(8)
        node.go_on()


@pytest.mark.parametrize("meanwhile", [nothing_else_happens, brokers_fall_silent_in_turn])
async def test_nothing_is_lost_or_doubled_when_a_killed_workers_partitions_are_taken_over_and(
    three: Cluster, on_three: Settings, meanwhile: Callable[[Cluster], Awaitable[None]]
) -> None:
    await ensure_topics(on_three.kafka)
    one, two = free_port(), free_port()
    with living(on_three, one) as first, living(on_three, two) as second:
        await until(
            lambda: asked(one, "/readyz").get("ready") and asked(two, "/readyz").get("ready"), alive=(first, second)
        )
        saying = asyncio.create_task(say(on_three))
        await until(lambda: remembered(one) and remembered(two), alive=(first, second))
        first.kill()
        first.wait()
        await meanwhile(three)
        said = await saying
        await until(lambda: idle(two), alive=second)
        await until_idle(second, on_three.kafka)
        stop(second)
    assert_once_each(on_three, said)


def remembered(port: int) -> int:
    """How many memories the worker has in its shards. Raises `NoAnswer`."""
    return int(asked(port, "/v1/stats/states")["total"])


async def started_again(three: Cluster, *nodes: Node) -> None:
    for node in nodes:
        node.start()
    await asyncio.to_thread(three.wait_until_up)


def assert_once_each(settings: Settings, said: set[str]) -> None:
    """Each message that was acknowledged is a source of one memory."""
    counted = sources(settings)
    assert said - counted.keys() == set()
    assert {message: times for message, times in counted.items() if times != 1} == {}


async def say(settings: Settings) -> set[str]:
    """Over some seconds, so that the fault is in the middle; the ids of what was acknowledged, which is all of it."""
    users = [f"user-{n}" for n in range(USERS)]
    topic = Topics.with_prefix(settings.kafka.topic_prefix).conversations
    producer = await started_producer(settings.kafka, linger_ms=20, request_timeout_ms=DELIVERY_MS)
    try:
        sent = []
        for i in range(MESSAGES):
            for user in users:
                said = line(i, user, ("user", "assistant")[i % 2], i)
                sent.append(await producer.send(topic, said, key=user.encode()))
            await asyncio.sleep(0.3)
        for user in users:
            ended = line(0, user, "user", MESSAGES, type="session_end")
            sent.append(await producer.send(topic, ended, key=user.encode()))
        await asyncio.gather(*sent)
    finally:
        await producer.stop()
    return {f"{user}-{i}" for user in users for i in range(MESSAGES)}
