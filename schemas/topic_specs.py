"""Topic specs: the configuration of each Kafka topic.

Missing topics are created with this configuration, and existing topics are compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from schemas.settings import KafkaSettings
from schemas.topics import TABLES, TOKENS, Topics, changelog_of

#: The maximum size of a record. An exchange of 16 messages of 32 KiB fits even with all characters escaped.
MAX_RECORD_BYTES: Final = 8 * 1024 * 1024
#: The maximum size of a record's value. The rest of the record is for its key and headers, and for headers that we
#: add when we produce the record again.
MAX_VALUE_BYTES: Final = 7 * 1024 * 1024
#: The minimum record size that a topic must accept: twice the size of an exchange of 16 messages of 32 KiB, without
#: escapes.
LEAST_RECORD_BYTES: Final = 1024 * 1024

DAY_MS: Final = 24 * 3600 * 1000
FOR_EVER: Final = -1

#: A worker reads its changelogs at each start. These values cause frequent compaction, which keeps a changelog short.
SEGMENT_BYTES: Final = 64 * 1024 * 1024
SEGMENT_MS: Final = 10 * 60 * 1000
DIRTY_RATIO: Final = 0.1
#: The minimum time for which a changelog keeps a tombstone (`delete.retention.ms`): Kafka's default.
TOMBSTONES_MS: Final = DAY_MS
#: The maximum downtime (ms) after which a worker still uses the windows on its disk. After a longer downtime it may
#: have missed tombstones, and would keep deleted rows. The value is below the lifetime of a tombstone, because
#: reading the changelogs takes time.
SLEPT_TOO_LONG_MS: Final = TOMBSTONES_MS - 2 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """The spec of one topic. If a field is None, the cluster decides the value, and the value is not compared.

    A `keyed` topic is co-partitioned with all other keyed topics, so it must have exactly `partitions` partitions.
    `replication` -1 means the cluster's default, and `retention_ms` -1 means for ever. A topic with a shorter
    retention than `retention_ms` loses data that cannot be recovered, unless its retention is at least
    `enough_retention_ms`. With a shorter retention than `least_retention_ms`, records may be lost before an absent
    worker has read them. Tombstones are kept for at least `tombstones_ms`. If a `vital` topic rejects or loses a
    record, memories are lost.
    """

    name: str
    partitions: int
    replication: int
    min_insync_replicas: int | None = None
    keyed: bool = False
    vital: bool = False
    cleanup_policy: Literal["delete", "compact"] = "delete"
    retention_ms: int | None = None
    enough_retention_ms: int | None = None
    least_retention_ms: int | None = None
    segment_bytes: int | None = None
    segment_ms: int | None = None
    dirty_ratio: float | None = None
    tombstones_ms: int | None = None
    max_message_bytes: int = MAX_RECORD_BYTES
    timestamp_type: Literal["CreateTime"] = "CreateTime"

    def configs(self) -> dict[str, str]:
        """Return the configuration with which the topic is created, by Kafka's names."""
        given = {
            "cleanup.policy": self.cleanup_policy,
            "max.message.bytes": self.max_message_bytes,
            "message.timestamp.type": self.timestamp_type,
            "min.insync.replicas": self.min_insync_replicas,
            "retention.ms": self.retention_ms,
            "segment.bytes": self.segment_bytes,
            "segment.ms": self.segment_ms,
            "min.cleanable.dirty.ratio": self.dirty_ratio,
            "delete.retention.ms": self.tombstones_ms,
        }
        return {name: str(value) for name, value in given.items() if value is not None}


def topic_specs(kafka: KafkaSettings, log_ms: int | None = None) -> tuple[TopicSpec, ...]:
    """Return the specs of the five topics under the prefix, in the order of `Topics.all()`.

    `log_ms` is a sufficient retention for `long-term` if checkpoints have the older events (see
    `CheckpointsSettings.log_ms`). It is ignored if `kafka.long_term_retention_ms` is not -1, because that setting is
    then the minimum.
    """
    names = Topics.with_prefix(kafka.topic_prefix)

    plain = TopicSpec("", kafka.partitions, kafka.replication, _min_insync(kafka.replication))
    kept = kafka.long_term_retention_ms
    log = replace(plain, name=names.long_term, keyed=True, vital=True, retention_ms=kept)
    if kept == FOR_EVER:
        log = replace(log, enough_retention_ms=log_ms)
    return (
        replace(plain, name=names.conversations, keyed=True, vital=True, least_retention_ms=DAY_MS),
        log,
        replace(plain, name=names.transitions),
        replace(plain, name=names.summary_requests, keyed=True, least_retention_ms=DAY_MS),
        replace(plain, name=names.dead_letters),
    )


def changelog_specs(kafka: KafkaSettings) -> tuple[TopicSpec, ...]:
    """Return the specs of the tables' changelogs, in the order of `TABLES`."""
    return tuple(
        TopicSpec(
            changelog_of(kafka.group_id, table),
            kafka.partitions,
            kafka.replication,
            _min_insync(kafka.replication),
            keyed=True,
            vital=True,
            cleanup_policy="compact",
            segment_bytes=SEGMENT_BYTES,
            segment_ms=SEGMENT_MS,
            dirty_ratio=DIRTY_RATIO,
            tombstones_ms=TOMBSTONES_MS,
        )
        for table in TABLES
    )


def tokens_spec(kafka: KafkaSettings) -> TopicSpec:
    """Return the spec of the topic of tokens. It has one partition, and every worker reads all of it."""
    return TopicSpec(
        kafka.topic_prefix + TOKENS,
        1,
        kafka.replication,
        _min_insync(kafka.replication),
        cleanup_policy="compact",
        max_message_bytes=LEAST_RECORD_BYTES,
    )


def _min_insync(replication: int) -> int | None:
    """Return `min.insync.replicas`: 2 if there are three or more replicas, otherwise None for the cluster's default.

    With 2, writes continue while one replica is down, and the loss of another replica loses no acknowledged record.
    """
    return 2 if replication >= 3 else None
