"""The settings, read from `config.yaml` and the environment, and validated once at start.

    SILTSTONE_MEMORY__PROMOTE_THRESHOLD=30 siltstone worker        # memory.promote_threshold

The environment wins over the file, which is `config.yaml` in the current folder, or the file that `SILTSTONE_CONFIG`
names. Secrets are `SecretStr`, so that `repr`, logs and errors never show them. Each section has a file of its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import ByteSize, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)
from pydantic_settings.exceptions import SettingsError as SourceError

from schemas.errors import SettingsError
from schemas.settings.access import AccessSettings, address_fault
from schemas.settings.agents import AgentsSettings, DefaultsSettings, SummarySettings
from schemas.settings.checkpoints import CheckpointsSettings
from schemas.settings.embedding import (
    OF_THE_MODEL,
    ONE_MODEL,
    OPENAI_EMBEDDINGS,
    TRANSFORMER,
    EmbeddingSettings,
    InputTypeName,
    settings_of_the_model,
)
from schemas.settings.kafka import KafkaSettings
from schemas.settings.lifecycle import CleanupSettings, LifecycleSettings, WhitelistSettings
from schemas.settings.long_term import LongTermSettings, RetentionSettings, SupersedeSettings
from schemas.settings.memory import MemorySettings, ScoringSettings, Updates
from schemas.settings.outlets import AnalyticsSettings, DevSettings, HttpSettings
from schemas.settings.recall import RecallSettings
from schemas.settings.rerank import RerankSettings
from schemas.settings.services import (
    DEFAULT_MODEL,
    OPENAI_URL,
    ChatSettings,
    LlmSettings,
    ProviderSettings,
    RaterSettings,
)
from schemas.settings.summaries import SUMMARY_VARIABLES, SettingWarning, SummaryPlan, summary_plan
from schemas.settings.telemetry import TelemetrySettings

CONFIG_VARIABLE = "SILTSTONE_CONFIG"

__all__ = [
    "CONFIG_VARIABLE",
    "DEFAULT_MODEL",
    "OF_THE_MODEL",
    "ONE_MODEL",
    "OPENAI_EMBEDDINGS",
    "OPENAI_URL",
    "SUMMARY_VARIABLES",
    "TRANSFORMER",
    "AccessSettings",
    "AgentsSettings",
    "AnalyticsSettings",
    "ChatSettings",
    "CheckpointsSettings",
    "CleanupSettings",
    "DefaultsSettings",
    "DevSettings",
    "EmbeddingSettings",
    "HttpSettings",
    "InputTypeName",
    "KafkaSettings",
    "LifecycleSettings",
    "LlmSettings",
    "LongTermSettings",
    "MemorySettings",
    "ProviderSettings",
    "RaterSettings",
    "RecallSettings",
    "RerankSettings",
    "RetentionSettings",
    "ScoringSettings",
    "SettingWarning",
    "Settings",
    "SummaryPlan",
    "SummarySettings",
    "SupersedeSettings",
    "TelemetrySettings",
    "Updates",
    "WhitelistSettings",
    "settings_of_the_model",
]


class Settings(BaseSettings):
    """All settings of Siltstone. Use `Settings.load()` to read them from the file and the environment."""

    model_config = SettingsConfigDict(env_prefix="SILTSTONE_", env_nested_delimiter="__", extra="forbid", frozen=True)

    data_dir: Path = Path("siltstone-data")
    memory_limit: Annotated[ByteSize, Field(ge=1 << 29)] | None = Field(
        default=None,
        description="limit for a worker's databases and caches together, such as 4GiB; unset: half of the memory",
    )
    kafka: KafkaSettings = KafkaSettings()
    memory: MemorySettings = MemorySettings()
    llm: LlmSettings = Field(default_factory=dict, validate_default=True)
    agents: AgentsSettings = AgentsSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    long_term: LongTermSettings = LongTermSettings()
    lifecycle: LifecycleSettings = LifecycleSettings()
    recall: RecallSettings = RecallSettings()
    rerank: RerankSettings = RerankSettings()
    checkpoints: CheckpointsSettings = CheckpointsSettings()
    analytics: AnalyticsSettings = AnalyticsSettings()
    access: AccessSettings = AccessSettings()
    http: HttpSettings = HttpSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    dev: DevSettings = DevSettings()

    @field_validator("checkpoints")
    @classmethod
    def _log_reaches_back(cls, checkpoints: CheckpointsSettings, info: ValidationInfo) -> CheckpointsSettings:
        """Reject a retention of the log `long-term` that is too short to restore the oldest kept checkpoint."""
        kafka = info.data.get("kafka")
        kept = kafka.long_term_retention_ms if isinstance(kafka, KafkaSettings) else -1
        if checkpoints.log_ms is not None and 0 <= kept < checkpoints.log_ms:
            raise ValueError(
                f"kafka.long_term_retention_ms is {kept}, but the log must reach back {checkpoints.log_ms} ms "
                "(checkpoints.keep times checkpoints.seconds, plus a day); -1 keeps it for ever"
            )
        return checkpoints

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
        """Return the settings from the file, the environment, and `overrides` (a command's options), which win.

        Raises `SettingsError` with one line per mistake: the key's path, the mistake, and the allowed values.
        """
        named = os.environ.get(CONFIG_VARIABLE)
        if named and not Path(named).is_file():
            raise SettingsError([f"{CONFIG_VARIABLE}: there is no file {named}"])
        try:
            settings = cls(**overrides)
        except ValidationError as exc:
            raise SettingsError([_problem(error) for error in exc.errors()]) from None
        except yaml.MarkedYAMLError as exc:  # the error's text quotes the file, and the file may hold a password
            line = f" (line {exc.problem_mark.line + 1})" if exc.problem_mark else ""
            raise SettingsError([f"config.yaml: is not valid YAML{line}"]) from None
        except (SourceError, yaml.YAMLError, ValueError, TypeError, AttributeError) as exc:
            raise SettingsError([f"config.yaml or environment: {' '.join(str(exc).split())}"]) from None
        if fault := address_fault(settings.http.host, settings.access):
            raise SettingsError([f"http.host: {fault}"])
        return settings

    def rater(self) -> ChatSettings | None:
        """Return the chat model that rates exchanges, or None if there is no API key for it.

        Without this model, the local estimator rates exchanges. Key and URL are always taken from the same section:
        `memory.scoring`, or `llm` if `memory.scoring` has no key. So `memory.scoring.base_url` is not used without
        `memory.scoring.api_key`.
        """
        scoring = self.memory.scoring
        service = scoring if scoring.api_key.get_secret_value() else self.llm
        if not service.api_key.get_secret_value():
            return None
        return ChatSettings(
            api_key=service.api_key,
            base_url=service.base_url or OPENAI_URL,
            model=scoring.model or self.llm.model or DEFAULT_MODEL,
            concurrency=scoring.concurrency,
            timeout_seconds=scoring.timeout_seconds,
        )

    def embedder(self) -> EmbeddingSettings:
        """Return the embedding model with every fallback resolved, including key and URL of the backend `openai`.

        Key and URL are always taken from the same section: `embedding`, or `llm` if `embedding` has no key. Raises
        `SettingsError` if neither section has a key, or if `embedding.base_url` is set without `embedding.api_key`:
        in this case memories would go to another service than the one in the settings.
        """
        embedding = self.embedding
        if embedding.backend != "openai":
            return embedding
        service = self._service("embedding", embedding)
        return embedding.model_copy(update={"api_key": service.api_key, "base_url": service.base_url or OPENAI_URL})

    def reranker(self) -> RerankSettings | None:
        """Return the reranker with every fallback resolved, including a service's key and URL; None if it is off.

        Key and URL are always taken from the same section: `rerank`, or `llm` if `rerank` has no key. Raises
        `SettingsError` if neither section has a key, if `rerank.base_url` is set without `rerank.api_key`, or if
        there is no URL: OpenAI, the default of `llm`, has no rerankers.
        """
        rerank = self.rerank
        if not rerank.model:
            return None
        if rerank.backend != "service":
            return rerank
        service = self._service("rerank", rerank)
        if not service.base_url:
            raise SettingsError(["rerank.base_url: is empty, and OpenAI has no rerankers: set the service's URL"])
        return rerank.model_copy(update={"api_key": service.api_key, "base_url": service.base_url})

    def _service(
        self, section: str, own: EmbeddingSettings | RerankSettings
    ) -> EmbeddingSettings | RerankSettings | LlmSettings:
        """Return the section that has key and URL of a service: `own`, called `section`, or `llm` if it has no key.

        Raises `SettingsError` if neither has a key, or if `own` has a URL, but no key.
        """
        has_key = bool(own.api_key.get_secret_value())
        if own.base_url and not has_key:
            raise SettingsError(
                [
                    f"{section}.api_key: is empty, but {section}.base_url is set: set the key (any text if the "
                    "service needs none), or remove the URL"
                ]
            )
        service = own if has_key else self.llm
        if not service.api_key.get_secret_value():
            raise SettingsError(
                [f"{section}.api_key: the backend {own.backend} needs a key: set {section}.api_key, or llm.api_key"]
            )
        return service

    def warnings(self) -> tuple[SettingWarning, ...]:
        """Return a warning for each setting without effect, of those that can be detected. It never raises."""
        warnings = self.summaries().warnings
        if unused := self.embedding.unused():
            what = f"no effect with embedding.backend {self.embedding.backend}"
            named = ", ".join(f"embedding.{name}" for name in unused)
            warnings = (*warnings, SettingWarning(f"{named}: {what}", "set another backend, or leave them out"))
        if self.recall.profile_by_model and self.rater() is None:
            what = "recall.profile_by_model has no effect, because there is no API key for a model"
            warnings = (*warnings, SettingWarning(what, "set llm.api_key (any text, if the service needs none)"))
        return warnings

    def summaries(self) -> SummaryPlan:
        """Return the plan of daily summaries. It never raises: the plan has a warning for each unusable setting."""
        return summary_plan(self.agents, self.llm, self.data_dir, os.environ)


def _problem(error: Any) -> str:
    path = ".".join(str(part) for part in error["loc"]) or "settings"
    return f"{path}: {error['msg'][0].lower()}{error['msg'][1:]}"
