"""The settings section `telemetry`: trace spans, and the collector to which they are sent."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from schemas.settings.section import Section
from schemas.settings.services import BaseUrl


def pairs(headers: str) -> dict[str, str]:
    """Parse headers in the form `name=value,name=value`, as in OTEL_EXPORTER_OTLP_HEADERS.

    Raises `ValueError`, whose text does not quote the headers, because they may contain secrets.
    """
    found = {}
    for pair in filter(None, (pair.strip() for pair in headers.split(","))):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (equals and name and (name + value).isascii() and (name + value).isprintable()):
            raise ValueError("needs the form name=value,name=value, of printable ASCII")
        found[name.lower()] = value
    return found


def _readable(headers: SecretStr) -> SecretStr:
    pairs(headers.get_secret_value())
    return headers


class TelemetrySettings(Section):
    """The settings of trace spans, which are made only if `enabled` is true.

    Settings that are not given in this section are taken from the environment variables OTEL_….
    """

    enabled: bool = Field(default=False, description="make spans and send them by OTLP/HTTP; needs the extra `otel`")
    endpoint: BaseUrl = Field(default="", description="the collector's base URL; spans go to `/v1/traces` below it")
    headers: Annotated[SecretStr, AfterValidator(_readable)] = Field(
        default=SecretStr(""), description="headers for the collector: name=value,name=value"
    )
    service_name: str = Field(default="", max_length=256)
    sample_ratio: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="share of the traces begun here that is recorded"
    )
    capture_content: bool = Field(
        default=False, description="spans contain the texts of queries and memories as well"
    )
