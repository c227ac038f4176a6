"""Settings: `config.yaml`, overridden by the environment, validated once at start.

    SILTSTONE_MEMORY__PROMOTE_THRESHOLD=30 siltstone worker        # memory.promote_threshold

The environment wins over the file (`config.yaml` in the current folder, or the one that `SILTSTONE_CONFIG`
names). Secrets are `SecretStr`: they never show in `repr`, logs or errors.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)
from pydantic_settings.exceptions import SettingsError as SourceError

from schemas.errors import SettingsError
from schemas.phrases import CONTENT_KEYWORDS, FORCE_PHRASES, STRONG_EMOTIONS

CONFIG_VARIABLE = "SILTSTONE_CONFIG"
Percent = Annotated[float, Field(ge=0, le=100)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSettings(_Section):
    """Where the broker is. Security settings have the names that librdkafka and aiokafka users know."""

    bootstrap_servers: str = "127.0.0.1:9092"
    topic_prefix: str = "siltstone."
    group_id: str = "siltstone"
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 8
    replication: Annotated[int, Field(ge=1, le=9)] = 1
    create_topics: bool = Field(default=True, description="create missing topics at start")
    session_timeout_seconds: Annotated[float, Field(gt=0)] = 6.0
    rebalance_timeout_seconds: Annotated[float, Field(gt=0)] = 2.0
    heartbeat_seconds: Annotated[float, Field(gt=0)] = 1.0
    commit_seconds: Annotated[float, Field(gt=0)] = 1.0
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    sasl_username: str = ""
    sasl_password: SecretStr = SecretStr("")
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None

    @model_validator(mode="after")
    def _credentials(self) -> Self:
        if self.security_protocol.startswith("SASL") and not (
            self.sasl_username and self.sasl_password.get_secret_value()
        ):
            raise ValueError(f"{self.security_protocol} needs sasl_username and sasl_password")
        return self


class ScoringSettings(_Section):
    """How an exchange is weighed."""

    policy: Literal["weighted", "all"] = "weighted"
    strong_emotions: tuple[str, ...] = STRONG_EMOTIONS
    content_keywords: tuple[str, ...] = CONTENT_KEYWORDS


class MemorySettings(_Section):
    """The short-term window and promotion out of it."""

    capacity: Annotated[int, Field(ge=1, le=10_000)] = 50
    ttl_seconds: Annotated[int, Field(ge=1)] = 86_400
    context_turns: Annotated[int, Field(ge=1)] = 10
    exchange_gap_seconds: Annotated[int, Field(ge=1)] = 120
    exchange_messages: Annotated[int, Field(ge=1)] = 16
    session_idle_seconds: Annotated[int, Field(ge=1)] = 1_800
    promote_threshold: Annotated[int, Field(ge=0)] = 10
    force_phrases: tuple[str, ...] = FORCE_PHRASES
    scoring: ScoringSettings = ScoringSettings()


class EmbeddingSettings(_Section):
    """Which model turns texts into vectors."""

    backend: Literal["use", "sentence-transformers"] = "use"
    model: str = "paraphrase-multilingual-MiniLM-L12-v2"
    batch_size: Annotated[int, Field(ge=1)] = 64


class LongTermSettings(_Section):
    """The shards."""

    access_increment: Annotated[float, Field(ge=0, le=100)] = 2.0
    near_copy: Annotated[float, Field(gt=0, le=1)] = 0.95
    top_k: Annotated[int, Field(ge=1, le=1000)] = 10
    context_memories: Annotated[int, Field(ge=0, le=100)] = 3
    save_seconds: Annotated[float, Field(gt=0)] = 60.0


class LifecycleSettings(_Section):
    """How importance decays, and where the states begin."""

    clock: Literal["wall", "event"] = "wall"
    fresh_days: Annotated[float, Field(ge=0)] = 7.0
    half_life_days: Annotated[float, Field(gt=0)] = 30.0
    active: Percent = 70.0
    cold: Percent = 30.0
    recompute_seconds: Annotated[float, Field(gt=0)] = 60.0

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.cold < self.active:
            raise ValueError(f"cold ({self.cold:g}) must be below active ({self.active:g})")
        return self


class HttpSettings(_Section):
    """The worker's API. Loopback only: it has no authentication yet."""

    host: Literal["127.0.0.1", "::1", "localhost"] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000


class Settings(BaseSettings):
    """Everything that can be set. `Settings.load()` is the one way to make it from file and environment."""

    model_config = SettingsConfigDict(env_prefix="SILTSTONE_", env_nested_delimiter="__", extra="forbid", frozen=True)

    data_dir: Path = Path("siltstone-data")
    kafka: KafkaSettings = KafkaSettings()
    memory: MemorySettings = MemorySettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    long_term: LongTermSettings = LongTermSettings()
    lifecycle: LifecycleSettings = LifecycleSettings()
    http: HttpSettings = HttpSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        path = Path(os.environ.get(CONFIG_VARIABLE, "config.yaml"))
        return init_settings, env_settings, YamlConfigSettingsSource(settings_cls, yaml_file=path)

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Settings from file, environment and `overrides` (a command's options, which win).

        Raises `SettingsError` with one line per mistake: the key's path, what is wrong, what is allowed.
        """
        named = os.environ.get(CONFIG_VARIABLE)
        if named and not Path(named).is_file():
            raise SettingsError([f"{CONFIG_VARIABLE}: there is no file {named}"])
        try:
            return cls(**overrides)
        except ValidationError as exc:
            raise SettingsError([_problem(error) for error in exc.errors()]) from None
        except yaml.MarkedYAMLError as exc:  # its text quotes the file, and the file may hold a password
            line = f" (line {exc.problem_mark.line + 1})" if exc.problem_mark else ""
            raise SettingsError([f"config.yaml: is not valid YAML{line}"]) from None
        except (SourceError, yaml.YAMLError, ValueError, TypeError, AttributeError) as exc:
            raise SettingsError([f"config.yaml or environment: {' '.join(str(exc).split())}"]) from None


def _problem(error: Any) -> str:
    path = ".".join(str(part) for part in error["loc"]) or "settings"
    return f"{path}: {error['msg'][0].lower()}{error['msg'][1:]}"
