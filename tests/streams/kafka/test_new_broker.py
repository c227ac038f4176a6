"""A memory-only broker begins again at offset 0; the shards in the data directory do not."""

from __future__ import annotations

import httpx

from schemas.settings import Settings
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import embedded_broker
from streams.telemetry.metrics import labelled
from tests.support.making import line
from tests.support.waiting import CLIENT_SECONDS, until

USERS = ("ann", "bob", "eve")


async def ingest(worker: Siltstone, messages: range) -> int:
    """Each user says these messages and goes; the number of records that the worker has read at its end."""
    said = len(USERS) * len(messages)
    async with producing(worker.settings.kafka) as producer:
        for user in USERS:
            for i in messages:
                await producer.send(user.encode(), line(i, user, ("user", "assistant")[i % 2], i))
            await producer.send(user.encode(), line(0, user, "user", messages.stop, type="session_end"))
    await until(lambda: labelled(worker.metrics.memories).get(("new",)) == said // 2)
    await until(lambda: worker.hot.processed(worker.topics.conversations) == said + len(USERS))
    assert labelled(worker.metrics.messages) == {(): said}
    return said + len(USERS)


async def remembered(worker: Siltstone, user: str) -> list[str]:
    """The messages whose memories are found for a user, in the order of their ids."""
    body = {"user_id": user, "query": "message", "topK": 50, "includeShortTerm": False}
    async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as client:
        answer = await client.post(f"http://127.0.0.1:{worker.api.port}/v1/search", json=body)
    return sorted(message for hit in answer.json()["results"] for message in hit["message_ids"])


async def test_a_new_broker_behind_an_old_data_directory_loses_nothing(settings: Settings) -> None:
    """Its records are taken in, although their offsets were all seen before; what was stored is still found."""
    memory = settings.memory.model_copy(
        update={"scoring": settings.memory.scoring.model_copy(update={"policy": "all"})}
    )
    long_term = settings.long_term.model_copy(update={"near_copy": 1.0})
    settings = settings.model_copy(update={"memory": memory, "long_term": long_term})
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        seen = await ingest(worker, range(8))

    with embedded_broker() as new:
        kafka = new.settings(settings.kafka).model_copy(update={"partitions": settings.kafka.partitions})
        settings = settings.model_copy(update={"kafka": kafka})
        async with running.started(settings) as worker:
            await running.until_ready(worker)
            assert await ingest(worker, range(100, 104)) < seen
            for user in USERS:
                ids = [*range(8), *range(100, 104)]
                assert await remembered(worker, user) == sorted(f"{user}-{i}" for i in ids)
