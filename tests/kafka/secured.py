"""A broker with passwords, certificates and rights: a listener for each way to be let in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from schemas.settings import KafkaSettings
from tests.kafka.certificates import Authority, Issued
from tests.kafka.cluster import Cluster, cluster
from tests.kafka.source import Source

USER, PASSWORD = "worker", "correct horse"
USERS = {USER: PASSWORD}
#: CLIENT has SCRAM over TLS. MUTUAL wants a client's certificate, and EXPIRED has an old one itself.
ALSO = {"SASL": "SASL_PLAINTEXT", "TLS": "SSL", "MUTUAL": "SSL", "EXPIRED": "SSL"}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@dataclass(frozen=True, slots=True)
class Secured:
    """The broker, its authority's certificate, and what a client may show."""

    brokers: Cluster
    authority: Authority
    client: Issued
    stranger: Issued
    other: Authority

    def settings(self, kafka: KafkaSettings, listener: str = "CLIENT", **changes: Any) -> KafkaSettings:
        """These settings for one of the listeners, as they are right, and then changed."""
        protocol = {"CLIENT": "SASL_SSL", "BROKER": "PLAINTEXT", **ALSO}[listener]
        right: dict[str, Any] = {
            "bootstrap_servers": self.brokers.servers(listener),
            "security_protocol": protocol,
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_username": USER,
            "sasl_password": SecretStr(PASSWORD),
            "ssl_cafile": self.authority.certificate,
        }
        if listener == "MUTUAL":
            right |= {"ssl_certfile": self.client.certificate, "ssl_keyfile": self.client.key}
        return self.brokers.settings(kafka).model_copy(update=right | changes)


@contextlib.contextmanager
def secured(source: Source, folder: Path) -> Iterator[Secured]:
    """One such broker; who comes by BROKER, and they alone, may do anything."""
    ours, other = Authority.new(folder, "authority"), Authority.new(folder, "another-authority")
    broker, client = ours.issue("broker"), ours.issue("client")
    expired, stranger = ours.issue("expired", days=-1), other.issue("stranger")
    properties = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(broker.both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(ours.certificate),
        "listener.name.client.scram-sha-256.sasl.jaas.config": SCRAM,
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": SCRAM,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.expired.ssl.keystore.type": "PEM",
        "listener.name.expired.ssl.keystore.location": str(expired.both),
    }
    with cluster(source, protocol="SASL_SSL", also=ALSO, properties=properties, users=USERS) as brokers:
        yield Secured(brokers, ours, client, stranger, other)
