"""How far a group is, asked of its broker: a worker knows the end of a topic only when it has fetched from there."""

from __future__ import annotations

import aiokafka
from aiokafka.errors import KafkaError

from schemas.settings import KafkaSettings
from schemas.topics import Topics
from streams.clients.broker import consumer_options
from tests.support.waiting import NoAnswer


async def all_committed(kafka: KafkaSettings) -> bool:
    """Whether the group has committed all that its topics hold. Raises `NoAnswer`.

    What a worker makes of a record is in the log before it commits the record. So it is enough to ask for the ends
    after the offsets: nothing is on its way then from one topic to another.
    """
    topics = Topics.with_prefix(kafka.topic_prefix)
    ours = [
        aiokafka.TopicPartition(topic, partition)
        for topic in (topics.conversations, topics.long_term, topics.summary_requests)
        for partition in range(kafka.partitions)
    ]
    consumer = aiokafka.AIOKafkaConsumer(
        **consumer_options(kafka), group_id=kafka.group_id, enable_auto_commit=False, auto_offset_reset="none"
    )
    try:
        await consumer.start()
        committed = {tp: await consumer.committed(tp) for tp in ours}
        first, ends = await consumer.beginning_offsets(ours), await consumer.end_offsets(ours)
    except KafkaError as exc:
        raise NoAnswer(f"the broker at {kafka.bootstrap_servers}: {exc!r}") from exc
    finally:
        await consumer.stop()
    return all((committed[tp] or first[tp]) >= ends[tp] for tp in ours)
