"""The settings section `llm`, and the settings that all OpenAI-compatible services have in common."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)

from schemas.settings.section import Section

OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-4o-mini"
PROVIDER = "[A-Za-z0-9_-]+"


def _web_address(url: str) -> str:
    """Return a service's base URL without a final slash. An empty URL is valid.

    Raises `ValueError` if the URL cannot be used. The error does not quote the URL, because it may be a misplaced
    key.
    """
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
    """Return an API key without white space at its ends, such as the line end of a file.

    A key with characters that are not allowed in an HTTP header is rejected. Otherwise HTTP packages would log the
    key.
    """
    key = secret.get_secret_value().strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("may hold printable ASCII only")
    return SecretStr(key)


BaseUrl = Annotated[str, AfterValidator(_web_address)]
ApiKey = Annotated[SecretStr, AfterValidator(_header_value)]
#: A provider's name, converted to lower case, because names from environment variables are in lower case.
ProviderName = Annotated[str, StringConstraints(to_lower=True, pattern=f"^{PROVIDER}$")]
ContextTokens = Annotated[
    int, Field(ge=4_096, le=100_000_000, description="token limit of question and answer together")
]


class ProviderSettings(Section):
    """The OpenAI-compatible service of the models named `<provider>/…`.

    The key is sent only to this section's URL. If key and URL are both empty, the service of `llm` is used, and only
    `context_tokens` is taken from this section.
    """

    api_key: ApiKey = SecretStr("")
    base_url: BaseUrl = ""
    context_tokens: ContextTokens | None = None


class LlmSettings(Section):
    """The OpenAI-compatible service for every model that has no service of its own.

    If `api_key` is empty, the environment variables OPENAI_API_KEY and OPENAI_BASE_URL replace both `api_key` and
    `base_url`, so that a key is never sent to the URL of another service.
    """

    api_key: ApiKey = SecretStr("")
    base_url: BaseUrl = ""
    model: str = ""
    providers: dict[ProviderName, ProviderSettings] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_openais_variables(cls, given: Any) -> Any:
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if key and isinstance(given, dict) and _is_empty(given.get("api_key", "")):
            return {**given, "api_key": key, "base_url": os.environ.get("OPENAI_BASE_URL", "")}
        return given

    @field_validator("providers", mode="before")
    @classmethod
    def _each_once(cls, given: Any) -> Any:
        if isinstance(given, dict) and len({str(name).lower() for name in given}) < len(given):
            raise ValueError("two providers have names that differ only in upper and lower case")
        return given


def _is_empty(key: object) -> bool:
    text = key.get_secret_value() if isinstance(key, SecretStr) else key
    return isinstance(text, str) and not text.strip()


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """A chat model, with its service and the limits for calls. Every fallback of the settings is already resolved."""

    api_key: SecretStr
    base_url: str
    model: str
    concurrency: int
    timeout_seconds: float


#: The model that rates exchanges.
RaterSettings = ChatSettings
