"""Topics and a group of a run's own at a Kafka that others may use, too."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator

import aiokafka.errors
import click

from schemas.settings import KafkaSettings
from streams.kafka.clients.broker import admin_client

#: What a run tells a process of its own.
TOLD = {"bootstrap_servers", "topic_prefix", "group_id", "partitions", "replication"}


def of_its_own(name: str, servers: str, partitions: int, replication: int = 1) -> KafkaSettings:
    """Settings with a unique topic prefix and a unique consumer group."""
    group = f"{name}-{uuid.uuid4().hex[:8]}"
    kafka = KafkaSettings(bootstrap_servers=servers, topic_prefix=f"{group}.", group_id=group)
    return kafka.model_copy(update={"partitions": partitions, "replication": replication})


@contextlib.asynccontextmanager
async def deleted_afterwards(kafka: KafkaSettings) -> AsyncIterator[None]:
    """When the block ends, however it does, the topics in whose names the group is are deleted.

    So are changelogs, which each library names in its own way. The group itself expires, as the broker is set.
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
            raise click.ClickException(f"topics of this run are left ({why}), delete them: {', '.join(sorted(left))}")
