"""The settings section `access`: access control for a worker's API."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from schemas.settings.oidc import LOOPBACK, OidcSettings
from schemas.settings.section import Section


class AccessSettings(Section):
    """Access control for a worker's API.

    If `tokens` is false, every process on the machine may send every request, and the API listens on loopback only.
    """

    tokens: bool = Field(default=False, description="every request needs a token (`siltstone token add`)")
    open_probes: bool = Field(
        default=True,
        description="`/healthz`, `/readyz` and `/metrics` answer without a token; false: only with a valid token",
    )
    oidc: OidcSettings = OidcSettings()

    @model_validator(mode="after")
    def _asked_for(self) -> Self:
        """Reject an OIDC provider if `tokens` is false, because then no request would need the provider's tokens."""
        if self.oidc.issuer and not self.tokens:
            raise ValueError("oidc.issuer: set access.tokens to true as well; otherwise no request needs a token")
        return self


def address_fault(host: str, access: AccessSettings) -> str:
    """Return the reason why the API may not listen on this address, or an empty text if it may."""
    if host in LOOPBACK or access.tokens:
        return ""
    return (
        f"{host} is not loopback (127.0.0.1, ::1, localhost), but requests need no token: "
        "set access.tokens to true and make a token with `siltstone token add`"
    )
