"""`access`: the access to a worker's API."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from schemas.settings.oidc import LOOPBACK, OidcSettings
from schemas.settings.section import Section


class AccessSettings(Section):
    """Without tokens, every process on the machine may ask for everything, and the API binds to loopback only."""

    tokens: bool = Field(default=False, description="every request needs a token (`siltstone token add`)")
    open_probes: bool = Field(
        default=True,
        description="`/healthz`, `/readyz` and `/metrics` answer without a token; false: only with a valid token",
    )
    oidc: OidcSettings = OidcSettings()

    @model_validator(mode="after")
    def _asked_for(self) -> Self:
        """Reject a provider without `tokens`: otherwise no request would need the provider's tokens."""
        if self.oidc.issuer and not self.tokens:
            raise ValueError("oidc.issuer: set access.tokens to true as well; otherwise no request needs a token")
        return self


def address_fault(host: str, access: AccessSettings) -> str:
    """Return the reason why the API may not be bound to this address; empty if it may."""
    if host in LOOPBACK or access.tokens:
        return ""
    return (
        f"{host} is not loopback (127.0.0.1, ::1, localhost), but requests need no token: "
        "set access.tokens to true and make a token with `siltstone token add`"
    )
