"""The settings section `agents`: the model of the main conversation, and daily summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from schemas.phrases import SUMMARY_PHRASES
from schemas.settings.section import Section
from schemas.times import ZoneName


def _name(given: Any) -> Any:
    """Convert a model's name to text, because YAML reads some names as numbers, and an empty name as null."""
    return "" if given is None else str(given) if isinstance(given, int | float) else given


#: A model's name in the form `provider/model`. A name of another form is not an error, but adds a warning to
#: `SummaryPlan.warnings`.
ModelName = Annotated[str, BeforeValidator(_name)]


class DefaultsSettings(Section):
    """Defaults for the agents that have no setting of their own."""

    model: ModelName = Field(default="", description="model of the main conversation")


#: The language of a summary's titles. `auto` is the main language of the conversation.
SummaryLanguage = Literal["auto", "zh", "en", "ja", "ko"]


#: Settings of summaries that may be spelled in camelCase.
_CAMEL: Final = {"maxTokens": "max_tokens", "mergeAtDayEnd": "merge_at_day_end"}


class SummarySettings(Section):
    """The configured settings of daily summaries. `Settings.summaries` resolves their fallbacks."""

    enabled: bool = Field(default=True, description="make summaries automatically; requests are answered in any case")
    interval: Any = Field(
        default=10, description="user messages of a session between summaries, 0-100; 0: never by count"
    )
    model: ModelName = ""
    max_tokens: Annotated[int, Field(ge=500, le=1_000_000, description="token limit of the answer")] = 4_000
    language: SummaryLanguage = Field(default="auto", description="auto: the main language of the conversation")
    merge_at_day_end: bool = Field(
        default=True, description="begin the file of a day that is over with one summary, made of all its summaries"
    )
    promote: bool = Field(default=False, description="remember the preferences and decisions of each summary")
    fallback_dir: Path | None = Field(
        default=None, description="second place for files of summaries; null: below ~/.siltstone/memory"
    )
    timezone: ZoneName = Field(default="UTC", description="time zone of the days")
    request_phrases: tuple[str, ...] = SUMMARY_PHRASES
    concurrency: Annotated[int, Field(ge=1, le=256)] = 2
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600)] = 60.0

    @model_validator(mode="before")
    @classmethod
    def _of_either_spelling(cls, given: Any) -> Any:
        """Accept the spellings of `_CAMEL` too. If the other spelling is also set, as by the environment, it wins."""
        if not isinstance(given, dict):
            return given
        renamed = {_CAMEL[key]: value for key, value in given.items() if key in _CAMEL}
        return {**renamed, **{key: value for key, value in given.items() if key not in _CAMEL}}


class AgentsSettings(Section):
    """The settings section `agents`, which has the parts `defaults` and `summary`."""

    defaults: DefaultsSettings = DefaultsSettings()
    summary: SummarySettings = SummarySettings()
