"""Settings: `config.yaml`, overridden by the environment, validated once at start.

    SILTSTONE_MEMORY__PROMOTE_THRESHOLD=30 siltstone worker        # memory.promote_threshold

The environment wins over the file (`config.yaml` in the current folder, or the one that `SILTSTONE_CONFIG`
names). Secrets are `SecretStr`: they never show in `repr`, logs or errors.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)
from pydantic_settings.exceptions import SettingsError as SourceError

from schemas.errors import SettingsError
from schemas.events import LONGEST_TTL_SECONDS
from schemas.phrases import CONTENT_KEYWORDS, FORCE_PHRASES, STRONG_EMOTIONS

CONFIG_VARIABLE = "SILTSTONE_CONFIG"
Percent = Annotated[float, Field(ge=0, le=100)]
Days = Annotated[float, Field(ge=0, le=36_500)]
OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-4o-mini"
TRANSFORMER = "paraphrase-multilingual-MiniLM-L12-v2"
OPENAI_EMBEDDINGS = "text-embedding-3-small"


def _web_address(url: str) -> str:
    """A base URL, or empty. Its text is in no error: keys get pasted into the wrong line."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        usable = False
    if url and (not usable or parts.query or parts.fragment):
        raise ValueError("needs the form https://host/path, without user, password, query or fragment")
    return url


def _header_value(secret: SecretStr) -> SecretStr:
    """A key without the line end that a file brings along. What no header can hold, HTTP packages would log."""
    key = secret.get_secret_value().strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("may hold printable ASCII only")
    return SecretStr(key)


BaseUrl = Annotated[str, AfterValidator(_web_address)]
ApiKey = Annotated[SecretStr, AfterValidator(_header_value)]


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


class LlmSettings(_Section):
    """The OpenAI-compatible service for everything that has none of its own.

    Without a key, OPENAI_API_KEY and OPENAI_BASE_URL take the place of key and URL. Both or neither: a key is
    never sent to another service's URL.
    """

    api_key: ApiKey = SecretStr("")
    base_url: BaseUrl = ""
    model: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_openais_variables(cls, given: Any) -> Any:
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if key and isinstance(given, dict) and _is_empty(given.get("api_key", "")):
            return {**given, "api_key": key, "base_url": os.environ.get("OPENAI_BASE_URL", "")}
        return given


def _is_empty(key: object) -> bool:
    text = key.get_secret_value() if isinstance(key, SecretStr) else key
    return isinstance(text, str) and not text.strip()


class ScoringSettings(_Section):
    """How an exchange is weighed, and which model judges it. `Settings.judge` says what an empty key means."""

    policy: Literal["weighted", "llm", "all"] = "weighted"
    strong_emotions: tuple[str, ...] = STRONG_EMOTIONS
    content_keywords: tuple[str, ...] = CONTENT_KEYWORDS
    api_key: ApiKey = SecretStr("")
    base_url: BaseUrl = ""
    model: str = ""
    concurrency: Annotated[int, Field(ge=1, le=256)] = 8
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600)] = 20.0


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """The model that rates exchanges, with every fallback resolved."""

    api_key: SecretStr
    base_url: str
    model: str
    concurrency: int
    timeout_seconds: float


class MemorySettings(_Section):
    """The short-term window and promotion out of it."""

    capacity: Annotated[int, Field(ge=1, le=10_000)] = 50
    ttl_seconds: Annotated[int, Field(ge=1, le=LONGEST_TTL_SECONDS)] = 86_400
    context_turns: Annotated[int, Field(ge=1)] = 10
    exchange_gap_seconds: Annotated[int, Field(ge=1)] = 120
    exchange_messages: Annotated[int, Field(ge=1)] = 16
    session_idle_seconds: Annotated[int, Field(ge=1)] = 1_800
    promote_threshold: Annotated[int, Field(ge=0)] = 10
    notes: Annotated[int, Field(ge=1, le=10_000, description="explicit short-term memories of a session")] = 100
    force_phrases: tuple[str, ...] = FORCE_PHRASES
    scoring: ScoringSettings = ScoringSettings()


class EmbeddingSettings(_Section):
    """Which model turns texts into vectors. `Settings.embedder` says what an empty key means.

    `model` is a name, or for `sentence-transformers` also a folder; an empty one is the backend's default. `use` has
    one model. Key, URL, time-out and dimensions are those of `openai`.
    """

    backend: Literal["use", "sentence-transformers", "openai"] = "use"
    model: Annotated[str, Field(validate_default=True)] = ""
    batch_size: Annotated[int, Field(ge=1, le=2048)] = 64
    api_key: ApiKey = SecretStr("")
    base_url: BaseUrl = ""
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600)] = 60.0
    dimensions: Annotated[int, Field(ge=1, le=65_536, description="asked of the service where set")] | None = None

    @field_validator("model")
    @classmethod
    def _of_the_backend(cls, model: str, info: ValidationInfo) -> str:
        default = OPENAI_EMBEDDINGS if info.data.get("backend") == "openai" else TRANSFORMER
        return model.strip() or default


class SupersedeSettings(_Section):
    """When a configured model is asked which older memory a new one replaces."""

    enabled: bool = True
    candidates: Annotated[int, Field(ge=1, le=20, description="older memories that one question shows")] = 3
    min_cosine: Annotated[float, Field(ge=-1, le=1)] = Field(
        default=0.35, description="how similar an older memory has to be; made for the embeddings `use`"
    )


class LongTermSettings(_Section):
    """The shards."""

    access_increment: Annotated[float, Field(ge=0, le=100)] = 2.0
    near_copy: Annotated[float, Field(gt=0, le=1)] = 0.95
    top_k: Annotated[int, Field(ge=1, le=1000)] = 10
    context_memories: Annotated[int, Field(ge=0, le=100)] = 3
    save_seconds: Annotated[float, Field(gt=0)] = 60.0
    intake_first_seconds: Annotated[float, Field(ge=0)] = 10.0
    max_memories_per_user: Annotated[int, Field(ge=0)] = Field(
        default=10_000, description="above it the oldest of the lowest scores are summed up; 0: never"
    )
    summaries_by_model: bool = Field(default=True, description="a configured model finds their words")
    supersede: SupersedeSettings = SupersedeSettings()

    @model_validator(mode="after")
    def _candidates_are_no_near_copies(self) -> Self:
        least = self.supersede.min_cosine
        if self.supersede.enabled and not least < self.near_copy:
            raise ValueError(f"supersede.min_cosine ({least:g}) must be below near_copy ({self.near_copy:g})")
        return self


class WhitelistSettings(_Section):
    """Whose memories, which, and those with which tags (`tags` in their metadata) cleanup leaves alone."""

    users: tuple[str, ...] = ()
    ids: tuple[uuid.UUID, ...] = ()
    tags: tuple[str, ...] = ()


class CleanupSettings(_Section):
    """When what nobody needs any more goes to the archive, and when it is removed from there."""

    enabled: bool = Field(default=False, description="do it on the lifecycle's timer; a command can in any case")
    paused: bool = Field(default=False, description="do nothing, not even for a command")
    after_days: Days = Field(default=30.0, description="how long deprecated, or summed up, before it goes")
    recent_access_days: Days = 7.0
    link_weight: Annotated[float, Field(ge=0, le=1, description="from here on a link keeps both its ends")] = 0.7
    retention_days: Days | None = Field(
        default=90.0, description="how long archived before it is removed; null: never"
    )
    whitelist: WhitelistSettings = WhitelistSettings()

    @field_validator("retention_days", mode="before")
    @classmethod
    def _null_of_the_environment(cls, given: Any) -> Any:
        return None if given == "null" else given


class LifecycleSettings(_Section):
    """How importance decays, and where the states begin."""

    clock: Literal["wall", "event"] = "wall"
    fresh_days: Annotated[float, Field(ge=0)] = 7.0
    half_life_days: Annotated[float, Field(gt=0)] = 30.0
    active: Percent = 70.0
    cold: Percent = 30.0
    recompute_seconds: Annotated[float, Field(gt=0)] = 60.0
    cleanup: CleanupSettings = CleanupSettings()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.cold < self.active:
            raise ValueError(f"cold ({self.cold:g}) must be below active ({self.active:g})")
        return self


class AnalyticsSettings(_Section):
    """The analysts' copy of the shards."""

    enabled: bool = Field(default=True, description="make it on a timer; a command can ask for one in any case")
    seconds: Annotated[float, Field(gt=0)] = 60.0


class HttpSettings(_Section):
    """The worker's API. Loopback only: it has no authentication yet."""

    host: Literal["127.0.0.1", "::1", "localhost"] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    advertised_url: BaseUrl = Field(
        default="", description="where other workers reach this one; empty: at host and port"
    )


class Settings(BaseSettings):
    """Everything that can be set. `Settings.load()` is the one way to make it from file and environment."""

    model_config = SettingsConfigDict(env_prefix="SILTSTONE_", env_nested_delimiter="__", extra="forbid", frozen=True)

    data_dir: Path = Path("siltstone-data")
    kafka: KafkaSettings = KafkaSettings()
    memory: MemorySettings = MemorySettings()
    llm: LlmSettings = Field(default_factory=dict, validate_default=True)
    embedding: EmbeddingSettings = EmbeddingSettings()
    long_term: LongTermSettings = LongTermSettings()
    lifecycle: LifecycleSettings = LifecycleSettings()
    analytics: AnalyticsSettings = AnalyticsSettings()
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

    def judge(self) -> JudgeSettings | None:
        """The model that judges exchanges; None where there is no key: the local estimator judges.

        Key and URL go together: those of `memory.scoring`, or without a key there those of `llm`. A
        `memory.scoring.base_url` without a key is therefore not used.
        """
        scoring = self.memory.scoring
        service = scoring if scoring.api_key.get_secret_value() else self.llm
        if not service.api_key.get_secret_value():
            return None
        return JudgeSettings(
            api_key=service.api_key,
            base_url=service.base_url or OPENAI_URL,
            model=scoring.model or self.llm.model or DEFAULT_MODEL,
            concurrency=scoring.concurrency,
            timeout_seconds=scoring.timeout_seconds,
        )

    def embedder(self) -> EmbeddingSettings:
        """The embedding model; for the backend `openai` with its service's key and URL, every fallback resolved.

        Key and URL go together: those of `embedding`, or those of `llm`. Raises `SettingsError` where there is no
        key, and where `embedding.base_url` has none beside it: memories would go to another service than the one
        that is named.
        """
        embedding = self.embedding
        if embedding.backend != "openai":
            return embedding
        own = embedding.api_key.get_secret_value()
        if embedding.base_url and not own:
            raise SettingsError(
                [
                    "embedding.api_key: is empty beside embedding.base_url: set it (any text, for a service that "
                    "needs none), or remove the URL"
                ]
            )
        service = embedding if own else self.llm
        if not service.api_key.get_secret_value():
            raise SettingsError(
                ["embedding.api_key: the backend openai needs a key: set embedding.api_key, or llm.api_key"]
            )
        return embedding.model_copy(update={"api_key": service.api_key, "base_url": service.base_url or OPENAI_URL})


def _problem(error: Any) -> str:
    path = ".".join(str(part) for part in error["loc"]) or "settings"
    return f"{path}: {error['msg'][0].lower()}{error['msg'][1:]}"
