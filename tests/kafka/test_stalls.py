"""Brokers that answer and take nothing: the worker's health says so, and which topic it is."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping

import httpx
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from schemas.settings import KafkaSettings, Settings
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import client_options
from streams.telemetry.metrics import labelled
from tests.kafka.cluster import Cluster
from tests.support.making import line
from tests.support.waiting import CLIENT_SECONDS, until, until_it_is

USER = "u"


async def alter(kafka: KafkaSettings, topic: str, configs: Mapping[str, str]) -> None:
    admin = AIOKafkaAdminClient(**client_options(kafka))
    await admin.start()
    try:
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))])
    finally:
        await admin.close()


async def readyz(worker: Siltstone) -> tuple[int, list[str]]:
    async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as client:
        answer = await client.get(f"http://127.0.0.1:{worker.api.port}/readyz")
    return answer.status_code, answer.json()["waiting_for"]


async def say(settings: Settings, messages: range) -> None:
    async with producing(settings.kafka) as producer:
        for i in messages:
            await producer.send(USER.encode(), line(i, USER, ("user", "assistant")[i % 2], i))


#: Longer than any commit of these tests takes.
STALL_SECONDS = 600.0


def stalling(settings: Settings) -> Settings:
    return settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"stall_seconds": STALL_SECONDS})})


def let_pass(worker: Siltstone, seconds: float) -> None:
    """The attempts to commit see so much time gone by at once; nothing else does."""
    worker.hot.attempts._monotonic = lambda: time.monotonic() + seconds


async def test_too_few_replicas_make_the_worker_unready_and_it_comes_back(three: Cluster, settings: Settings) -> None:
    """The client tries it again for twenty minutes without a word; messages are read, and none is committed."""
    name = uuid.uuid4().hex[:8]
    kafka = three.settings(settings.kafka).model_copy(update={"topic_prefix": f"{name}.", "group_id": name})
    settings = stalling(settings.model_copy(update={"kafka": kafka}))
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        changelog = f"{name}-exchanges-changelog"
        await alter(kafka, changelog, {"min.insync.replicas": "3"})
        three.nodes[2].kill()
        await say(settings, range(4))
        await until(lambda: labelled(worker.metrics.messages) == {(): 4}, alive=worker)
        await until(worker.hot.not_committing, alive=worker)
        let_pass(worker, STALL_SECONDS + 1)

        async def unready() -> bool:
            status, reasons = await readyz(worker)
            return status == 503 and any(
                f"{changelog} has not accepted the due records" in reason for reason in reasons
            )

        await until_it_is(unready, alive=worker)
        assert worker.hot.lag()[worker.topics.conversations] == 4
        three.nodes[2].start()
        await asyncio.to_thread(three.wait_until_up)
        await until(lambda: worker.health.ready, alive=worker)
        await until(lambda: worker.hot.lag()[worker.topics.conversations] == 0, alive=worker)


async def test_topics_that_take_small_records_alone_hold_nobody_up(settings: Settings) -> None:
    """A dead letter and a row that are too large are told; all that is read is committed, and the worker is ready."""
    settings = stalling(settings)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        for topic in (worker.topics.dead_letters, f"{settings.kafka.group_id}-exchanges-changelog"):
            await alter(settings.kafka, topic, {"max.message.bytes": "1000"})
        async with producing(settings.kafka) as producer:
            await producer.send(USER.encode(), b"no message" * 500)
        await say(settings, range(4))
        await until(lambda: labelled(worker.metrics.messages) == {(): 4}, alive=worker)
        await until(lambda: worker.hot.lag()[worker.topics.conversations] == 0, alive=worker)
        assert sum(labelled(worker.metrics.refused).values()) > 0
        assert (await readyz(worker)) == (200, [])
