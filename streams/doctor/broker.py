"""The broker: whether it answers, and whether the topics that are there fit together."""

from __future__ import annotations

from collections.abc import Mapping

import aiokafka.errors
from aiokafka.admin import AIOKafkaAdminClient

from schemas.settings import KafkaSettings, Settings
from schemas.topics import Topics
from streams.clients.broker import client_options
from streams.doctor.finding import Finding, failed, ok

CHECK, TOPICS = "broker", "topics"


async def check_broker(settings: Settings) -> list[Finding]:
    """Connects as the worker does, asks for brokers and topics, and creates nothing."""
    kafka = settings.kafka
    servers = kafka.bootstrap_servers
    admin = None
    try:
        admin = AIOKafkaAdminClient(**client_options(kafka))
        await admin.start()
        brokers = len((await admin.describe_cluster())["brokers"])
        # Of all: to ask for one by its name can create it, with the broker's own number of partitions.
        described = await admin.describe_topics()
    except (aiokafka.errors.KafkaError, OSError) as exc:
        return [failed(CHECK, f"no Kafka broker answers at {servers} ({type(exc).__name__})", unreachable(kafka))]
    except ValueError:
        return [
            failed(
                CHECK, f"kafka.bootstrap_servers is no address: {servers}", "write host:port, or host:port,host:port"
            )
        ]
    finally:
        if admin is not None:
            await admin.close()
    counts = {topic["topic"]: len(topic["partitions"]) for topic in described}
    answers = ok(CHECK, f"{servers} answers; {brokers} broker{'' if brokers == 1 else 's'}")
    return [answers, *topic_findings(kafka, counts, brokers)]


def unreachable(kafka: KafkaSettings) -> str:
    """What to do where no broker answers."""
    advice = "start it, or set kafka.bootstrap_servers"
    if kafka.security_protocol == "PLAINTEXT":
        return f"{advice}; one that wants TLS or SASL needs kafka.security_protocol"
    return f"{advice}; the broker's log says whether it refused credentials or certificates"


def topic_findings(kafka: KafkaSettings, counts: Mapping[str, int], brokers: int) -> list[Finding]:
    """`counts` are the partitions of every topic that the broker has."""
    names = Topics.with_prefix(kafka.topic_prefix)
    changelogs = {name for name in counts if name.startswith(f"{kafka.group_id}-") and name.endswith("-changelog")}
    ours = names.conversations, names.long_term, names.summary_requests
    keyed = [name for name in (*ours, *sorted(changelogs)) if name in counts]
    found = [
        failed(TOPICS, f"{name} has {counts[name]} partitions, and kafka.partitions is {kafka.partitions}", todo)
        for name in keyed
        if counts[name] != kafka.partitions
        for todo in [
            f"set kafka.partitions to {counts[name]}"
            if name not in changelogs
            else f"set kafka.partitions back to {counts[name]}, or take a new kafka.group_id"
        ]
    ]
    missing = [name for name in names.all() if name not in counts]
    if missing and not kafka.create_topics:
        found.append(
            failed(
                TOPICS, f"there is no {', '.join(missing)}", "create what is missing, or allow kafka.create_topics"
            )
        )
    elif missing and kafka.replication > brokers:
        found.append(
            failed(
                TOPICS,
                f"kafka.replication is {kafka.replication}, and there are {brokers} brokers to keep a copy each",
                f"set kafka.replication to {brokers} at the most, or start more brokers",
            )
        )
    if found:
        return found
    there = len(names.all()) - len(missing)
    if not missing:
        return [ok(TOPICS, f"all {there} are there, with {kafka.partitions} partitions where it matters")]
    return [ok(TOPICS, f"{there} of {len(names.all())} are there; the worker makes the others at its start")]
