"""Finds the right number of partitions if topics and settings disagree: the number with which users were stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from schemas.settings import KafkaSettings
from schemas.topics import Topics, partition_of

#: The largest number of partitions that is tried if the numbers of the topics and of the settings are wrong.
MOST_PARTITIONS: Final = 1024


def disagreement(kafka: KafkaSettings, counts: Mapping[str, int], stored: Collection[tuple[str, int]]) -> str | None:
    """Return one line with all wrong numbers and their corrections; None if all numbers agree.

    `counts` are the partition counts of the existing keyed topics. `stored` are users of the data directory, each
    with the shard that has the user's memories. The right number is the one that fits these users, because the
    partition count of `long-term` may have been raised later. Without stored users, or if no number fits them, the
    count of `long-term` is right. If `long-term` does not exist either, the setting is right.
    """
    wrong = {name: count for name, count in counts.items() if count != kafka.partitions}
    by_users = next((n for n in _candidates(kafka, counts, stored) if _fits(n, stored)), None) if stored else None
    if not wrong and by_users in (None, kafka.partitions):
        return None
    right, because = _right(kafka, counts, by_users)
    todo = [f"set kafka.partitions to {right}"] if kafka.partitions != right else []
    todo += [_mending(kafka, name, count, right) for name, count in counts.items() if count != right]
    there = (
        ", ".join(f"{name} has {count}" for name, count in wrong.items())
        or "the shards were made with another number"
    )
    what = f"kafka.partitions is {kafka.partitions}, and {there}: {right} is the right number, because {because}"
    return "; ".join([what, *todo])


def _right(kafka: KafkaSettings, counts: Mapping[str, int], by_users: int | None) -> tuple[int, str]:
    long_term = Topics.with_prefix(kafka.topic_prefix).long_term
    if by_users is not None:
        return by_users, "the shards of the data directory were made with it"
    if long_term in counts:
        return counts[long_term], f"{long_term} has that many"
    return kafka.partitions, "nothing is stored yet"


def _candidates(
    kafka: KafkaSettings, counts: Mapping[str, int], stored: Collection[tuple[str, int]]
) -> Iterator[int]:
    """Yield the numbers of partitions to try.

    They are the numbers of the topics and of the settings, `long-term` first, and then all numbers that are high
    enough for the existing shards.
    """
    long_term = Topics.with_prefix(kafka.topic_prefix).long_term
    if long_term in counts:
        yield counts[long_term]
    yield kafka.partitions
    yield from sorted(counts.values())
    yield from range(1 + max((partition for _, partition in stored), default=0), MOST_PARTITIONS + 1)


def _fits(partitions: int, stored: Collection[tuple[str, int]]) -> bool:
    """True if, with this number of partitions, each user belongs to the shard that has the user's memories."""
    return all(partition_of(user, partitions) == partition for user, partition in stored)


def _mending(kafka: KafkaSettings, name: str, count: int, right: int) -> str:
    secured = "" if kafka.security_protocol == "PLAINTEXT" else " --command-config client.properties"
    tool = f"kafka-topics.sh --bootstrap-server {kafka.bootstrap_servers}{secured}"
    if count < right:
        return f"{tool} --alter --topic {name} --partitions {right}"
    return (
        f"partitions cannot be removed from {name}: copy the records that you need, delete it, and create it with "
        f"{right}"
    )
