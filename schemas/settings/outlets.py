"""The settings `analytics` (analysts' copy), `http` (a worker's API) and `dev` (the broker of `siltstone dev`)."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from schemas.settings.section import Section
from schemas.settings.services import BaseUrl

#: A host name without a port, because a proxy in front of the worker may use any port.
HostName = Annotated[
    str, Field(pattern=r"^([A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)$")
]


class AnalyticsSettings(Section):
    """The settings of the analysts' copy, which has the rows of all shards."""

    enabled: bool = Field(default=True, description="make the copy on a timer; a command can request one in any case")
    seconds: Annotated[float, Field(gt=0)] = 60.0


class HttpSettings(Section):
    """The worker's API. An address other than loopback needs tokens (`access.tokens`)."""

    mcp: bool = Field(default=True, description="serve MCP at `/mcp` as well")
    dashboard: bool = Field(default=True, description="serve the dashboard at `/ui` as well")
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    advertised_url: BaseUrl = Field(
        default="", description="URL at which other workers reach this one; empty: host and port"
    )
    allowed_hosts: tuple[HostName, ...] = Field(
        default=(),
        description="host names, besides loopback's, under which the API answers and whose web pages may call it; "
        "with tokens and an empty list, any name",
    )

    @property
    def own_names(self) -> tuple[str, ...]:
        """The host names by which other workers address this worker."""
        advertised = urlsplit(self.advertised_url).hostname
        return (self.host, advertised) if advertised else (self.host,)


class DevSettings(Section):
    """The settings of `siltstone dev`: the journal of its embedded broker."""

    journal_seconds: Annotated[float, Field(gt=0, le=10)] = Field(
        default=0.2,
        description="time after which acknowledged records, which are in the file at once, are synced to the disk",
    )
