"""The names of the Kafka topics, and the key and partition of a user's records.

The topics' configuration is in `topic_specs`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

CONVERSATIONS = "conversations"
LONG_TERM = "long-term"
TRANSITIONS = "transitions"
SUMMARY_REQUESTS = "summary-requests"
DEAD_LETTERS = "dead-letters"
#: The topic of access tokens. It exists if `access.tokens` is set, and is not a part of the pipeline.
TOKENS = "tokens"

#: The names of the short-term tables. Each table has a changelog, whose name begins with the id of the consumer
#: group.
EXCHANGES = "exchanges"
SESSIONS = "sessions"
NOTES = "notes"
PENDING_SUMMARIES = "pending-summaries"
TABLES: Final = (SESSIONS, EXCHANGES, NOTES, PENDING_SUMMARIES)

#: Headers of a Kafka record.
Headers = Sequence[tuple[str, bytes]]

#: The header of a record that was produced a second time because its key or partition was wrong. A record with this
#: header is not rerouted again.
REROUTED_HEADER = "siltstone.rerouted"
#: The header of a promotion's record that has the Kafka timestamp (epoch ms, decimal digits) of the message that
#: closed the exchange, or of another record that caused the decision. The worker uses it only to measure the age of
#: promotions.
CLOSED_AT_HEADER = "closed.at"
#: The header of a promotion's record that has the promotion's sources, as a JSON list. It is set only if the sources
#: are not the usual ones and the event does not name them. The sources are in a header because the value has only the
#: decision and its result.
SOURCES_HEADER = "siltstone.sources"
#: The header of a record of `conversations` that has the name of its producer: a service or a device. The worker
#: measures the clock error of each producer.
PRODUCER_HEADER = "producer"


@dataclass(frozen=True, slots=True)
class Topics:
    """The full names of the topics under one prefix.

    >>> Topics.with_prefix("siltstone.").long_term
    'siltstone.long-term'
    """

    conversations: str
    long_term: str
    transitions: str
    summary_requests: str
    dead_letters: str

    @classmethod
    def with_prefix(cls, prefix: str) -> Self:
        names = (CONVERSATIONS, LONG_TERM, TRANSITIONS, SUMMARY_REQUESTS, DEAD_LETTERS)
        return cls(*(prefix + name for name in names))

    def all(self) -> tuple[str, ...]:
        return (
            self.conversations,
            self.long_term,
            self.transitions,
            self.summary_requests,
            self.dead_letters,
        )


def changelog_of(group_id: str, table: str) -> str:
    """Return the name of a table's changelog topic.

    >>> changelog_of("siltstone", SESSIONS)
    'siltstone-sessions-changelog'
    """
    return f"{group_id}-{table}-changelog"


def key_of(user_id: str) -> bytes:
    """Return the record key in a keyed topic: the raw UTF-8 of the user's id."""
    return user_id.encode()


@lru_cache(maxsize=65_536)
def partition_of(user_id: str, partitions: int) -> int:
    """Return the user's partition, as Kafka's default partitioner computes it.

    The partition is Kafka's murmur2 (seed 0x9747b28c) of the key, made positive, modulo the number of partitions. The
    Java client, librdkafka's `murmur2_random` and aiokafka compute the same partition.
    """
    return (_murmur2(key_of(user_id)) & 0x7FFFFFFF) % partitions


@lru_cache(maxsize=65_536)
def route_of(user_id: str, partitions: int) -> tuple[bytes, int]:
    """Return the key and the partition of all records of this user, in a keyed topic."""
    return key_of(user_id), partition_of(user_id, partitions)


def _murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bit, as in `org.apache.kafka.common.utils.Utils.murmur2`."""
    length, m, mask = len(data), 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ length
    for word in struct.unpack_from(f"<{length // 4}I", data):
        k = word * m & mask
        h = (h * m & mask) ^ ((k ^ (k >> 24)) * m & mask)
    if tail := data[length & ~3 :]:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ (h >> 13)) * m & mask
    return h ^ (h >> 15)
