"""The doctor's check whether a Kafka broker answers. The module `topics` checks the broker's topics."""

from __future__ import annotations

import aiokafka.errors
from aiokafka.admin import AIOKafkaAdminClient

from schemas.errors import BrokerRefused
from schemas.settings import KafkaSettings, Settings
from streams.doctor.finding import Finding, failed, ok
from streams.doctor.topics import contract_findings, topic_findings
from streams.kafka.clients.broker import client_options, translated
from streams.kafka.topics.contract import compare, partitions_disagree

CHECK = "broker"


async def check_broker(settings: Settings) -> list[Finding]:
    """Connect to Kafka in the same way as a worker, and check the brokers and the topics. Nothing is created."""
    kafka = settings.kafka
    servers = kafka.bootstrap_servers
    admin = None
    try:
        admin = AIOKafkaAdminClient(**client_options(kafka))
        await admin.start()
        brokers = len((await admin.describe_cluster())["brokers"])
        # Request all topics. A request for one missing topic could create it, with a wrong number of partitions.
        described = await admin.describe_topics()
        compared = await compare(admin, kafka, settings.checkpoints.log_ms)
    except (aiokafka.errors.KafkaError, OSError) as exc:
        if isinstance(refused := await translated(kafka, exc), BrokerRefused):
            return [failed(CHECK, f"{refused.bootstrap_servers} refuses access: {refused.cause}", refused.todo)]
        return [failed(CHECK, f"no Kafka broker answers at {servers} ({type(exc).__name__})", unreachable(kafka))]
    except ValueError:
        return [
            failed(
                CHECK,
                f"kafka.bootstrap_servers is not an address: {servers}",
                "write host:port, or host:port,host:port",
            )
        ]
    finally:
        if admin is not None:
            await admin.close()
    counts = {topic["topic"]: len(topic["partitions"]) for topic in described}
    answers = ok(CHECK, f"{servers} answers; {brokers} broker{'' if brokers == 1 else 's'}")
    disagree = await partitions_disagree(kafka, counts, settings.data_dir)
    return [answers, *topic_findings(kafka, counts, brokers, disagree), *contract_findings(compared)]


def unreachable(kafka: KafkaSettings) -> str:
    """Return the advice for the finding that no broker answers."""
    advice = "start a broker, or set kafka.bootstrap_servers"
    if kafka.security_protocol == "PLAINTEXT":
        return f"{advice}; for TLS or SASL, set kafka.security_protocol"
    return f"{advice}; the broker's log says whether it refused credentials or certificates"
