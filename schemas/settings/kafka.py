"""`kafka`: the broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from schemas.settings.section import Section


class KafkaSettings(Section):
    """The connection to the broker. Security settings have the names that librdkafka and aiokafka users know."""

    bootstrap_servers: str = "127.0.0.1:9092"
    topic_prefix: str = "siltstone."
    group_id: str = "siltstone"
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 8
    replication: Annotated[int, Field(ge=-1, le=9)] = Field(
        default=-1, description="copies of the topics that are created; -1: the cluster's default"
    )
    long_term_retention_ms: Annotated[int, Field(ge=-1)] = Field(
        default=-1,
        description="for how long the topic `long-term`, of which shards are rebuilt, must be kept; -1: for ever",
    )
    create_topics: bool = Field(default=True, description="create missing topics at start")
    session_timeout_seconds: Annotated[float, Field(gt=0)] = 6.0
    rebalance_timeout_seconds: Annotated[float, Field(gt=0)] = 2.0
    heartbeat_seconds: Annotated[float, Field(gt=0)] = 1.0
    commit_seconds: Annotated[float, Field(gt=0)] = 1.0
    stall_seconds: Annotated[float, Field(gt=0)] = Field(
        default=30.0,
        description="a worker that could commit nothing of what it has processed for so long is not ready",
    )
    isolation_level: Literal["read_committed", "read_uncommitted"] = Field(
        default="read_committed",
        description="read_committed: nothing of a transaction that is open or was aborted",
    )
    instance_id: str = Field(
        default="",
        description="a name of this worker's own, which it keeps over a restart: within `session_timeout_seconds` "
        "no other worker takes over its partitions",
    )
    idempotence: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="whether `ingest` and `replay` have the broker drop what it is sent a second time; auto: where "
        "it can",
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    sasl_username: str = ""
    sasl_password: SecretStr = SecretStr("")
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None

    @field_validator("replication")
    @classmethod
    def _copies(cls, replication: int) -> int:
        if not replication:
            raise ValueError("no copy is none; -1 is the cluster's default")
        return replication

    @model_validator(mode="after")
    def _credentials(self) -> Self:
        if self.security_protocol.startswith("SASL") and not (
            self.sasl_username and self.sasl_password.get_secret_value()
        ):
            raise ValueError(f"{self.security_protocol} needs sasl_username and sasl_password")
        return self
