"""The Faust app of a worker, with its options for the connection to the broker, for reading and for producing."""

from __future__ import annotations

import ssl
from typing import Any, Final

import faust
from faust.types.auth import SASLMechanism

from schemas.settings import KafkaSettings, Settings
from schemas.topic_specs import MAX_RECORD_BYTES
from streams.kafka.clients.tls import ssl_context

#: The maximum size of a produced batch in bytes. Brokers accept 1 MiB by default. With large batches, a commit
#: produces fewer batches and so is faster.
BATCH_BYTES: Final = 900_000


def faust_app(settings: Settings) -> faust.App:
    kafka = settings.kafka
    return faust.App(
        kafka.group_id,
        broker=[f"kafka://{server.strip()}" for server in kafka.bootstrap_servers.split(",")],
        broker_credentials=_credentials(kafka),
        store="memory://",
        datadir=str(settings.data_dir / "faust"),
        web_enabled=False,
        topic_partitions=kafka.partitions,
        topic_disable_leader=True,
        topic_allow_declare=False,  # `worker_topics` has created the topics
        consumer_auto_offset_reset="earliest",
        stream_wait_empty=False,
        # No standby replicas, because the checks for silent sessions and expired notes would treat the rows of other
        # workers' partitions as rows of this worker.
        table_standby_replicas=0,
        broker_max_poll_records=16_000,
        broker_commit_interval=kafka.commit_seconds,
        broker_session_timeout=kafka.session_timeout_seconds,
        broker_rebalance_timeout=kafka.rebalance_timeout_seconds,
        broker_heartbeat_interval=kafka.heartbeat_seconds,
        consumer_group_instance_id=kafka.instance_id or None,
        producer_linger=0.02,
        producer_max_batch_size=BATCH_BYTES,
        producer_max_request_size=MAX_RECORD_BYTES,
        # While an embedding service is down, events wait, and our log reports this once a minute. With shorter
        # limits, Faust would also log it for each partition every few seconds.
        stream_processing_timeout=86_400.0,
        broker_commit_livelock_soft_timeout=86_400.0,
    )


def _credentials(kafka: KafkaSettings) -> Any:
    context: ssl.SSLContext | None = ssl_context(kafka)
    if kafka.security_protocol.startswith("SASL"):
        return faust.SASLCredentials(
            username=kafka.sasl_username,
            password=kafka.sasl_password.get_secret_value(),
            mechanism=SASLMechanism(kafka.sasl_mechanism),
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context else None
