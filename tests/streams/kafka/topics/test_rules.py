"""Settings of topics beside their specs: what loses memory, what is only worse, and what mends it."""

from __future__ import annotations

import pytest

from schemas.settings import CheckpointsSettings, KafkaSettings
from schemas.topic_specs import TopicSpec, changelog_specs, topic_specs
from streams.kafka.topics.rules import differences, mending

KAFKA = KafkaSettings()
CONVERSATIONS, LONG_TERM, TRANSITIONS, SUMMARY_REQUESTS, DEAD_LETTERS = topic_specs(KAFKA)
(CHANGELOG, *_) = changelog_specs(KAFKA)
#: What a new Apache Kafka tells of a topic that was created without a word.
DEFAULTS = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "min.cleanable.dirty.ratio": "0.5",
    "delete.retention.ms": "86400000",
}


def told(spec: TopicSpec, **changes: str) -> dict[str, str]:
    """Of a topic that was created by its spec, and changed since."""
    return DEFAULTS | spec.configs() | {name.replace("_", "."): value for name, value in changes.items()}


@pytest.mark.parametrize("spec", [*topic_specs(KAFKA), *changelog_specs(KAFKA)], ids=lambda spec: spec.name)
def test_a_topic_that_was_created_by_its_spec_does_not_differ(spec: TopicSpec) -> None:
    assert differences(spec, told(spec), replicas=1) == []


@pytest.mark.parametrize(
    ("spec", "setting", "value", "wanted"),
    [
        (LONG_TERM, "retention.ms", "60000", "-1"),
        (LONG_TERM, "retention.bytes", "1000000", "-1"),
        (LONG_TERM, "cleanup.policy", "compact", "delete"),
        (LONG_TERM, "cleanup.policy", "compact,delete", "delete"),
        (LONG_TERM, "max.message.bytes", "1000", "8388608"),
        (CONVERSATIONS, "cleanup.policy", "compact", "delete"),
        (CONVERSATIONS, "max.message.bytes", "1000", "8388608"),
        (CHANGELOG, "cleanup.policy", "delete", "compact"),
        (CHANGELOG, "cleanup.policy", "delete,compact", "compact"),
        (CHANGELOG, "max.message.bytes", "1000", "8388608"),
        (CHANGELOG, "delete.retention.ms", "86399999", "86400000"),
    ],
)
def test_what_loses_memory_is_told_from_the_rest(spec: TopicSpec, setting: str, value: str, wanted: str) -> None:
    (found,) = differences(spec, told(spec) | {setting: value})
    assert (found.loses, found.setting, found.is_now, found.wanted) == (True, setting, value, wanted)


@pytest.mark.parametrize(
    ("spec", "setting", "value", "wanted"),
    [
        (CONVERSATIONS, "retention.ms", "60000", "86400000"),
        (SUMMARY_REQUESTS, "retention.ms", "60000", "86400000"),
        (LONG_TERM, "max.message.bytes", "1048588", "8388608"),
        (DEAD_LETTERS, "max.message.bytes", "1000", "8388608"),
        (TRANSITIONS, "cleanup.policy", "compact", "delete"),
        (LONG_TERM, "message.timestamp.type", "LogAppendTime", "CreateTime"),
        (LONG_TERM, "unclean.leader.election.enable", "true", "false"),
        (CHANGELOG, "segment.bytes", "1073741824", "67108864"),
        (CHANGELOG, "segment.ms", "604800000", "600000"),
        (CHANGELOG, "min.cleanable.dirty.ratio", "0.5", "0.1"),
    ],
)
def test_what_is_only_worse_is_warned_of(spec: TopicSpec, setting: str, value: str, wanted: str) -> None:
    (found,) = differences(spec, told(spec) | {setting: value})
    assert (found.loses, found.setting, found.is_now, found.wanted) == (False, setting, value, wanted)


@pytest.mark.parametrize(
    ("least", "replicas", "wanted"), [("1", 1, None), ("1", 3, "2"), ("2", 3, None), ("2", 1, "1"), ("3", 2, "1")]
)
def test_a_record_is_with_two_of_three_brokers_and_can_be_written_at_all(
    least: str, replicas: int, wanted: str | None
) -> None:
    found = differences(LONG_TERM, told(LONG_TERM) | {"min.insync.replicas": least}, replicas)
    assert [(one.wanted, one.loses) for one in found] == ([] if wanted is None else [(wanted, False)])


def test_a_retention_that_was_wished_is_kept_and_a_shorter_one_loses() -> None:
    (_, spec, *_) = topic_specs(KafkaSettings(long_term_retention_ms=1_000_000))
    assert differences(spec, told(spec)) == []
    assert differences(spec, told(spec) | {"retention.ms": "-1"}) == []
    (found,) = differences(spec, told(spec) | {"retention.ms": "999999"})
    assert (found.loses, found.wanted) == (True, "1000000")


def test_what_the_broker_does_not_tell_is_not_judged() -> None:
    assert differences(LONG_TERM, {}) == []
    assert differences(LONG_TERM, {"max.message.bytes": "8388608"}) == []


def test_one_command_mends_all_that_is_wrong_with_a_topic() -> None:
    found = differences(CHANGELOG, DEFAULTS)
    assert mending(KAFKA, found) == (
        "kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type topics "
        "--entity-name siltstone-sessions-changelog --add-config cleanup.policy=compact,max.message.bytes=8388608,"
        "segment.bytes=67108864,segment.ms=600000,min.cleanable.dirty.ratio=0.1"
    )


def test_on_a_secured_cluster_the_command_names_the_clients_properties() -> None:
    kafka = KAFKA.model_copy(update={"security_protocol": "SSL"})
    assert " --command-config client.properties --alter " in mending(kafka, differences(CHANGELOG, DEFAULTS))


@pytest.mark.parametrize(("replication", "least"), [(-1, None), (1, None), (2, None), (3, "2"), (5, "2")])
def test_of_three_copies_two_must_be_in_sync(replication: int, least: str | None) -> None:
    kafka = KafkaSettings(replication=replication)
    specs = (*topic_specs(kafka), *changelog_specs(kafka))
    assert {spec.configs().get("min.insync.replicas") for spec in specs} == {least}


CHECKPOINTS = CheckpointsSettings(url="file:///checkpoints", keep=3, seconds=300)
#: Three times 300 seconds, and a day.
ENOUGH = 3 * 300_000 + 86_400_000


def test_with_checkpoints_the_log_may_be_as_short_as_they_and_a_day() -> None:
    assert CHECKPOINTS.log_ms == ENOUGH
    (_, spec, *_) = topic_specs(KAFKA, CHECKPOINTS.log_ms)
    assert spec.configs()["retention.ms"] == "-1"
    assert differences(spec, told(spec) | {"retention.ms": str(ENOUGH)}) == []
    (found,) = differences(spec, told(spec) | {"retention.ms": str(ENOUGH - 1)})
    assert (found.loses, found.wanted) == (True, str(ENOUGH))
    (found,) = differences(spec, told(spec) | {"retention.bytes": "1000000"})
    assert (found.loses, found.wanted) == (True, "-1")


def test_without_checkpoints_nothing_is_enough() -> None:
    assert CheckpointsSettings(keep=3, seconds=300).log_ms is None
    (found,) = differences(LONG_TERM, told(LONG_TERM) | {"retention.ms": str(10**15)})
    assert (found.loses, found.wanted) == (True, "-1")


def test_a_longer_retention_that_was_wished_stays_the_least_with_checkpoints() -> None:
    (_, spec, *_) = topic_specs(KafkaSettings(long_term_retention_ms=2 * ENOUGH), CHECKPOINTS.log_ms)
    assert differences(spec, told(spec)) == []
    (found,) = differences(spec, told(spec) | {"retention.ms": str(ENOUGH)})
    assert (found.loses, found.wanted) == (True, str(2 * ENOUGH))
