"""Rules for topics: compare the cluster's settings of a topic with its `TopicSpec`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from schemas.settings import KafkaSettings
from schemas.topic_specs import FOR_EVER, LEAST_RECORD_BYTES, TopicSpec

#: From this number of replicas on, two must be in sync. Otherwise a broker that fails may have the only copy of an
#: acknowledged record.
SAFE_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class SpecDifference:
    """A wrong setting of a topic. If `loses`, the setting would cause a loss of memory, so no worker starts."""

    topic: str
    setting: str
    is_now: str
    wanted: str
    loses: bool
    why: str

    def __str__(self) -> str:
        return f"{self.setting} is {self.is_now}: {self.why}"


def differences(spec: TopicSpec, told: Mapping[str, str], replicas: int | None = None) -> list[SpecDifference]:
    """Return the differences between the specification and the reported settings, `told`.

    Settings that are not reported are ignored: the broker may be Tansu, or a right may be missing.
    """
    return [
        SpecDifference(spec.name, setting, told[setting], wanted, loses, why)
        for setting, rule in _RULES.items()
        if setting in told
        for wanted, loses, why in rule(spec, told[setting], replicas)
    ]


def mending(kafka: KafkaSettings, found: Sequence[SpecDifference]) -> str:
    """Return the one command that corrects all differences of a topic."""
    secured = "" if kafka.security_protocol == "PLAINTEXT" else " --command-config client.properties"
    added = ",".join(f"{difference.setting}={difference.wanted}" for difference in found)
    return (
        f"kafka-configs.sh --bootstrap-server {kafka.bootstrap_servers}{secured} --alter --entity-type topics "
        f"--entity-name {found[0].topic} --add-config {added}"
    )


#: The result of a rule, for each wrong setting: the wanted value, True if memory is lost without it, and the reason.
_Verdicts = Iterator[tuple[str, bool, str]]


def _cleanup(spec: TopicSpec, told: str, _: int | None) -> _Verdicts:
    if {policy.strip() for policy in told.split(",")} == {spec.cleanup_policy}:
        return
    if spec.cleanup_policy == "compact":
        why = "rows that have not changed for a while are deleted, and are missing after the next start"
    else:
        why = "only the newest record of each key is kept"
    yield spec.cleanup_policy, spec.vital, why


def _retention(spec: TopicSpec, told: str, _: int | None) -> _Verdicts:
    kept, wanted, enough = int(told), spec.retention_ms, spec.enough_retention_ms
    if kept == FOR_EVER or (enough is not None and kept >= enough):
        return
    if enough is not None:
        why = "older records are only in checkpoints: the log must reach back a day beyond the oldest of these"
        yield str(enough), True, why
    elif wanted is not None and (wanted == FOR_EVER or kept < wanted):
        yield str(wanted), True, "shards are rebuilt from it, as far back as kafka.long_term_retention_ms says"
    elif spec.least_retention_ms is not None and kept < spec.least_retention_ms:
        yield str(spec.least_retention_ms), False, "a worker that is away for longer loses unread records"


def _size(spec: TopicSpec, told: str, _: int | None) -> _Verdicts:
    if spec.retention_ms == FOR_EVER and int(told) != FOR_EVER:
        yield str(FOR_EVER), True, "shards are rebuilt from it"


def _message(spec: TopicSpec, told: str, _: int | None) -> _Verdicts:
    taken = int(told)
    if taken < spec.max_message_bytes:
        loses = spec.vital and taken < LEAST_RECORD_BYTES
        yield str(spec.max_message_bytes), loses, "larger records are refused"


def _timestamps(spec: TopicSpec, told: str, _: int | None) -> _Verdicts:
    if told != spec.timestamp_type:
        yield spec.timestamp_type, False, "records do not keep the times of their producers"


def _in_sync(spec: TopicSpec, told: str, replicas: int | None) -> _Verdicts:
    least = int(told)
    if replicas is None:
        return
    if least > replicas:
        yield str(max(1, replicas - 1)), False, f"there are {replicas} replicas, so older brokers accept no records"
    elif replicas >= SAFE_REPLICAS and least < 2:
        yield "2", False, "a broker that fails may lose records that it alone has acknowledged"


def _elections(spec: TopicSpec, told: str, _: int | None) -> _Verdicts:
    if spec.vital and told == "true":
        yield "false", False, "a leader that was behind may lose acknowledged records"


def _tombstones(spec: TopicSpec, told: str, _: int | None) -> _Verdicts:
    if spec.tombstones_ms is not None and int(told) < spec.tombstones_ms:
        why = "a worker that was away for longer keeps deleted rows and forgotten data"
        yield str(spec.tombstones_ms), True, why


def _at_most(wanted: Callable[[TopicSpec], float | None]) -> Callable[[TopicSpec, str, int | None], _Verdicts]:
    def rule(spec: TopicSpec, told: str, _: int | None) -> _Verdicts:
        most = wanted(spec)
        if most is not None and float(told) > most:
            yield str(most), False, "each start reads more than necessary"

    return rule


_RULES: Mapping[str, Callable[[TopicSpec, str, int | None], _Verdicts]] = {
    "cleanup.policy": _cleanup,
    "retention.ms": _retention,
    "retention.bytes": _size,
    "max.message.bytes": _message,
    "message.timestamp.type": _timestamps,
    "min.insync.replicas": _in_sync,
    "unclean.leader.election.enable": _elections,
    "segment.bytes": _at_most(lambda spec: spec.segment_bytes),
    "segment.ms": _at_most(lambda spec: spec.segment_ms),
    "min.cleanable.dirty.ratio": _at_most(lambda spec: spec.dirty_ratio),
    "delete.retention.ms": _tombstones,
}
