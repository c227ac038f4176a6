"""How far a group is, asked of its broker: a worker knows the end of a topic only when it has fetched from there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from schemas.settings import KafkaSettings
from schemas.topics import Topics
from streams.kafka.clients.broker import consumer_options
from streams.kafka.clients.log_reader import ends
from tests.support.waiting import NoAnswer


async def committed(kafka: KafkaSettings, partition: int) -> int | None:
    """The group's offset in a partition of `conversations`; None where it has none."""
    place = TopicPartition(Topics.with_prefix(kafka.topic_prefix).conversations, partition)
    async with _of_the_group(kafka, [place]) as consumer:
        offset: int | None = await consumer.committed(place)
        return offset


async def all_committed(kafka: KafkaSettings) -> bool:
    """Whether the group has committed all that its topics hold. Raises `NoAnswer`.

    What a worker makes of a record is in the log before it commits the record. So it is enough to ask for the ends
    after the offsets: nothing is on its way then from one topic to another.
    """
    topics = Topics.with_prefix(kafka.topic_prefix)
    places = [
        TopicPartition(topic, partition)
        for topic in (topics.conversations, topics.long_term, topics.summary_requests)
        for partition in range(kafka.partitions)
    ]
    try:
        async with _of_the_group(kafka, places) as consumer:
            reached = {place: await consumer.committed(place) for place in places}
            first, last = await consumer.beginning_offsets(places), await ends(consumer, places)
    except (KafkaError, TimeoutError) as exc:
        raise NoAnswer(f"the broker at {kafka.bootstrap_servers}: {exc!r}") from exc
    return all((reached[place] or first[place]) >= last[place] for place in places)


@asynccontextmanager
async def _of_the_group(kafka: KafkaSettings, places: Sequence[TopicPartition]) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer that asks for the group's offsets, and is no member of it."""
    consumer = AIOKafkaConsumer(group_id=kafka.group_id, enable_auto_commit=False, **consumer_options(kafka))
    try:
        await consumer.start()
        consumer.assign(places)
        yield consumer
    finally:
        await consumer.stop()
