"""Resolves the settings of daily summaries and their environment variables into a plan, with warnings about them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from schemas.settings.agents import AgentsSettings, SummaryLanguage, SummarySettings
from schemas.settings.services import OPENAI_URL, PROVIDER, ChatSettings, LlmSettings, ProviderSettings

MODEL_VARIABLE = "NANOBOT_SUMMARY_MODEL"
INTERVAL_VARIABLE = "NANOBOT_SUMMARY_INTERVAL"
AUTO_VARIABLE = "NANOBOT_AUTO_SUMMARY"
#: Environment variables for summaries, besides those that begin with SILTSTONE_.
SUMMARY_VARIABLES = (MODEL_VARIABLE, INTERVAL_VARIABLE, AUTO_VARIABLE)

DEFAULT_INTERVAL, LONGEST_INTERVAL = 10, 100
#: The context size in tokens that is assumed for a model if none is configured. Hardly any model has a smaller
#: context.
DEFAULT_CONTEXT_TOKENS = 8_192
OPENAI = "openai"

_OFF, _ON = {"false", "0", "no", "off"}, {"", "true", "1", "yes", "on"}
_DIGITS = re.compile(r"\s*[0-9]{1,3}\s*")
_MODEL = re.compile(rf"({PROVIDER})/([^\s/](?:\S*[^\s/])?)")


@dataclass(frozen=True, slots=True)
class SettingWarning:
    """A setting that is not used, and how to correct it.

    The warning does not quote the setting's value, because the value may be a misplaced key.
    """

    what: str
    todo: str

    def __str__(self) -> str:
        return f"{self.what}; {self.todo}"


@dataclass(frozen=True, slots=True)
class SummaryPlan:
    """The resolved settings of daily summaries.

    `model` is None if summaries are extractive, that is, made without a model. If `automatic` is true, summaries are
    made by count and at the end of each day. Requested summaries are made in any case. `interval` is the number of
    user messages between two summaries by count; with 0, none are made by count. If `merge_at_day_end` is true, the
    file of a day that is over begins with one summary, made of all its summaries. `fallback_dir` is the second
    directory for summaries, or None if there is none. Log the `warnings` at start.
    """

    model: ChatSettings | None
    max_tokens: int
    context_tokens: int
    automatic: bool
    interval: int
    language: SummaryLanguage
    merge_at_day_end: bool
    promote: bool
    timezone: ZoneInfo
    request_phrases: tuple[str, ...]
    fallback_dir: Path | None
    warnings: tuple[SettingWarning, ...] = ()


class _Named(NamedTuple):
    """A model's name `provider/name`, with the provider in lower case."""

    provider: str
    name: str


def summary_plan(
    agents: AgentsSettings, llm: LlmSettings, data_dir: Path, environment: Mapping[str, str]
) -> SummaryPlan:
    """Return the plan of daily summaries that results from settings and environment variables."""
    summary = agents.summary
    named, misnamed = _model(agents, environment)
    provider = llm.providers.get(named.provider, ProviderSettings()) if named else ProviderSettings()
    model, unserved = _asked(named, provider, llm, summary) if named else (None, None)
    automatic, unclear = _automatic(summary, environment)
    interval, uncounted = _interval(summary, environment)
    fallback, homeless = _fallback(summary.fallback_dir, data_dir)
    return SummaryPlan(
        model=model,
        max_tokens=summary.max_tokens,
        context_tokens=provider.context_tokens or DEFAULT_CONTEXT_TOKENS,
        automatic=automatic,
        interval=interval,
        language=summary.language,
        merge_at_day_end=summary.merge_at_day_end,
        promote=summary.promote,
        timezone=ZoneInfo(summary.timezone),
        request_phrases=summary.request_phrases,
        fallback_dir=fallback,
        warnings=tuple(
            warning for warning in (*misnamed, unserved, unclear, uncounted, homeless) if warning is not None
        ),
    )


def _model(agents: AgentsSettings, environment: Mapping[str, str]) -> tuple[_Named | None, list[SettingWarning]]:
    """Return the first usable model name, or None, and a warning for each unusable name.

    The order is: the environment variable, `agents.summary.model`, `agents.defaults.model`.
    """
    usable, warnings = [], []
    for key, given in (
        (MODEL_VARIABLE, environment.get(MODEL_VARIABLE, "")),
        ("agents.summary.model", agents.summary.model),
        ("agents.defaults.model", agents.defaults.model),
    ):
        name = given.strip()
        found = _MODEL.fullmatch(name)
        if found and name.isprintable():
            usable.append(_Named(found[1].lower(), found[2]))
        elif name:
            what = f"{key}: is not of the form provider/model, so it is not used"
            warnings.append(SettingWarning(what, "write it like deepseek/deepseek-chat"))
    return (usable[0] if usable else None), warnings


def _asked(
    named: _Named, provider: ProviderSettings, llm: LlmSettings, summary: SummarySettings
) -> tuple[ChatSettings | None, SettingWarning | None]:
    """Return the chat model for summaries with its service, or None and a warning if no service can be used.

    The service is the provider's own, or that of `llm`. A key is sent only to the URL of its own section. If `llm`
    has no URL, its key is one of OpenAI, so its service is used only for OpenAI's models. If `llm` has a URL, its
    service is used for all models.
    """
    key = f"llm.providers.{named.provider}"
    service: ProviderSettings | LlmSettings
    if provider.api_key.get_secret_value():
        service = provider
        missing = (f"{key}.base_url: is empty, so its key is sent to no service", "set it")
    elif provider.base_url:
        what = f"{key}.api_key: is empty, but its base_url is set"
        return _extractive(what, "set it (any text if the service needs none), or remove the URL")
    else:
        service = llm
        missing = (
            f"{key}: is not set, and llm.base_url does not name a service for the summaries' model",
            f"set {key}.api_key and base_url",
        )
    if not service.api_key.get_secret_value():
        return _extractive(f"{key}.api_key: the summaries' model needs a key", "set it, or llm.api_key")
    if not service.base_url and named.provider != OPENAI:
        return _extractive(*missing)
    chat = ChatSettings(
        api_key=service.api_key,
        base_url=service.base_url or OPENAI_URL,
        model=named.name,
        concurrency=summary.concurrency,
        timeout_seconds=summary.timeout_seconds,
    )
    return chat, None


def _extractive(what: str, todo: str) -> tuple[None, SettingWarning]:
    return None, SettingWarning(what, f"{todo}; until then summaries are extractive")


def _automatic(summary: SummarySettings, environment: Mapping[str, str]) -> tuple[bool, SettingWarning | None]:
    given = environment.get(AUTO_VARIABLE, "").strip().lower()
    unclear = SettingWarning(f"{AUTO_VARIABLE}: is neither true nor false, so it is not used", "correct it")
    return summary.enabled and given not in _OFF, None if given in _OFF | _ON else unclear


def _interval(summary: SummarySettings, environment: Mapping[str, str]) -> tuple[int, SettingWarning | None]:
    key, given = INTERVAL_VARIABLE, environment.get(INTERVAL_VARIABLE, "").strip() or None
    if given is None:
        key, given = "agents.summary.interval", summary.interval
    number = int(given) if isinstance(given, str) and _DIGITS.fullmatch(given) else given
    if type(number) is int and 0 <= number <= LONGEST_INTERVAL:
        return number, None
    what = f"{key}: is not an integer from 0 to {LONGEST_INTERVAL}, so {DEFAULT_INTERVAL} is used"
    return DEFAULT_INTERVAL, SettingWarning(what, "correct it")


def _fallback(given: Path | None, data_dir: Path) -> tuple[Path | None, SettingWarning | None]:
    """Return the second directory, for summaries that cannot be written to the data directory.

    By default it is in the home directory. A directory beside the data directory would often fail for the same
    reason: a full disk, or missing rights. A temporary directory may be emptied. Every data directory has its own
    second directory, because users of two data directories may have the same ids, but are different people. If there
    is no home directory, return None and a warning.
    """
    absolute = data_dir.absolute()
    digest = hashlib.sha256(str(absolute).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    path = given or Path("~/.siltstone/memory", f"{absolute.name or 'data'}-{digest}")
    try:
        return path.expanduser(), None
    except RuntimeError:
        what = "agents.summary.fallback_dir: there is no home directory, so summaries have no second place"
        return None, SettingWarning(what, "name an absolute path")
