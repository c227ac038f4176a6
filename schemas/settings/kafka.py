"""The settings section `kafka`: the connection to the broker, and the topics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from schemas.settings.section import Section


class KafkaSettings(Section):
    """The connection to the broker. Security settings have the same names as in librdkafka and aiokafka."""

    bootstrap_servers: str = "127.0.0.1:9092"
    topic_prefix: str = "siltstone."
    group_id: str = "siltstone"
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 8
    replication: Annotated[int, Field(ge=-1, le=9)] = Field(
        default=-1, description="replicas of each topic that is created; -1: the cluster's default"
    )
    long_term_retention_ms: Annotated[int, Field(ge=-1)] = Field(
        default=-1,
        description="least retention of the topic `long-term`, from which shards are rebuilt; -1: for ever",
    )
    create_topics: bool = Field(default=True, description="create missing topics at start")
    session_timeout_seconds: Annotated[float, Field(gt=0)] = 6.0
    rebalance_timeout_seconds: Annotated[float, Field(gt=0)] = 2.0
    heartbeat_seconds: Annotated[float, Field(gt=0)] = 1.0
    commit_seconds: Annotated[float, Field(gt=0)] = 1.0
    stall_seconds: Annotated[float, Field(gt=0)] = Field(
        default=30.0,
        description="a worker is not ready if it has processed records but could commit none for this time",
    )
    isolation_level: Literal["read_committed", "read_uncommitted"] = Field(
        default="read_committed",
        description="read_committed: no records of open or aborted transactions are read",
    )
    instance_id: str = Field(
        default="",
        description="this worker's own name, the same after a restart: if it is back within "
        "`session_timeout_seconds`, no other worker takes over its partitions",
    )
    idempotence: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="whether the broker drops records that `ingest` and `replay` send a second time; auto: if it can",
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
            raise ValueError("a topic needs at least one replica; -1 is the cluster's default")
        return replication

    @model_validator(mode="after")
    def _credentials(self) -> Self:
        if self.security_protocol.startswith("SASL") and not (
            self.sasl_username and self.sasl_password.get_secret_value()
        ):
            raise ValueError(f"{self.security_protocol} needs sasl_username and sasl_password")
        return self
