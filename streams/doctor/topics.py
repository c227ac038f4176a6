"""The doctor's check of the Kafka topics: do their partitions and their settings match what a worker requires?"""

from __future__ import annotations

from collections.abc import Mapping

from schemas.settings import KafkaSettings
from schemas.topics import Topics
from streams.doctor.finding import Finding, failed, ok, warning
from streams.kafka.topics.contract import Compared

TOPICS = "topics"


def contract_findings(compared: Compared) -> list[Finding]:
    """Return a finding for each topic whose settings differ from the required ones.

    If the broker does not show the settings of some topics, one more finding names these topics.
    """
    found = [
        (failed if unfit.loses else warning)(TOPICS, f"{unfit.topic}: {unfit.what}", unfit.command)
        for unfit in compared.unfit
    ]
    if compared.untold:
        found.append(
            warning(
                TOPICS,
                f"the broker does not show the settings of {', '.join(compared.untold)}, so they are not compared",
                "allow kafka.sasl_username DESCRIBE_CONFIGS on them",
            )
        )
    return found


def topic_findings(
    kafka: KafkaSettings, counts: Mapping[str, int], brokers: int, disagree: str | None = None
) -> list[Finding]:
    """Check that all topics exist or can be created.

    `counts` has the number of partitions of every topic on the broker. If some of these numbers are wrong, `disagree`
    is an error text followed by "; " and advice, otherwise None.
    """
    names = Topics.with_prefix(kafka.topic_prefix)
    found = []
    if disagree is not None:
        what, _, todo = disagree.partition("; ")
        found.append(failed(TOPICS, what, todo))
    missing = [name for name in names.all() if name not in counts]
    if missing and not kafka.create_topics:
        found.append(
            failed(TOPICS, f"missing topics: {', '.join(missing)}", "create them, or set kafka.create_topics to true")
        )
    elif missing and kafka.replication > brokers:
        found.append(
            failed(
                TOPICS,
                f"kafka.replication is {kafka.replication}, more than the number of brokers ({brokers})",
                f"set kafka.replication to at most {brokers}, or start more brokers",
            )
        )
    if found:
        return found
    there = len(names.all()) - len(missing)
    if not missing:
        return [ok(TOPICS, f"all {there} topics exist, with {kafka.partitions} partitions where required")]
    return [ok(TOPICS, f"{there} of {len(names.all())} topics exist; the worker creates the others at its start")]
