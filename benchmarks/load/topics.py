"""A run's own topics and group, on a Kafka that others may use too."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator

import aiokafka.errors
import click

from schemas.settings import KafkaSettings
from streams.kafka.clients.broker import admin_client

#: The settings that a run passes to its own processes.
TOLD = {"bootstrap_servers", "topic_prefix", "group_id", "partitions", "replication"}


def of_its_own(name: str, servers: str, partitions: int, replication: int = 1) -> KafkaSettings:
    """Settings with a unique topic prefix and a unique consumer group."""
    group = f"{name}-{uuid.uuid4().hex[:8]}"
    kafka = KafkaSettings(bootstrap_servers=servers, topic_prefix=f"{group}.", group_id=group)
    return kafka.model_copy(update={"partitions": partitions, "replication": replication})


@contextlib.asynccontextmanager
async def deleted_afterwards(kafka: KafkaSettings) -> AsyncIterator[None]:
    """When the block ends, also with an error, delete the topics that have the group's id in their names.

    These include changelogs, which each library names in its own way. The group expires by the broker's settings.
    """
    try:
        yield
    finally:
        async with admin_client(kafka) as admin:
            ours = [name for name in await admin.list_topics() if kafka.group_id in name]
            answer = await admin.delete_topics(ours) if ours else None
        left = {name: code for name, code in answer.topic_error_codes if code} if answer else {}
        if left:
            why = aiokafka.errors.for_code(next(iter(left.values()))).__name__
            raise click.ClickException(f"topics of this run are left ({why}): delete {', '.join(sorted(left))}")
