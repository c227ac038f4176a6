"""The settings section `access.oidc`: an OpenID Connect provider whose tokens are accepted besides our own."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from schemas.settings.section import Section

#: The algorithms of RFC 7518 and 8037 that sign with a private key. With a shared key, each service that checks
#: tokens could also create them, so those algorithms are not allowed.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]  # fmt: skip
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def _provider_address(url: str) -> str:
    """Return a provider's URL unchanged. An empty URL is valid. Raises `ValueError` if the URL cannot be used.

    The URL is not normalised, because the claim `iss` of a token must equal it exactly.
    """
    try:
        parts = urlsplit(url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        usable = safe and bool(parts.hostname) and "@" not in parts.netloc and url.isprintable() and " " not in url
    except ValueError:
        usable = False
    if url and (not usable or parts.fragment):
        raise ValueError("needs the form https://host/path, without user or password (http:// on loopback only)")
    return url


ProviderUrl = Annotated[str, AfterValidator(_provider_address)]
Claim = Annotated[str, Field(max_length=256)]


class OidcSettings(Section):
    """The OpenID Connect provider. Without an issuer, only our own tokens are accepted.

    docs/run.md explains the claims with examples.
    """

    issuer: ProviderUrl = Field(default="", description="exactly the `iss` of the tokens, with any final slash")
    audience: str = Field(default="", description="this API's name at the provider, required in the tokens' `aud`")
    jwks_url: ProviderUrl = Field(default="", description="URL of the keys; empty: those of the issuer's discovery")
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = ("RS256", "ES256", "EdDSA")
    user_claim: Annotated[Claim, Field(min_length=1)] = Field(
        default="sub", description="claim with the one user that a token covers"
    )
    users_claim: Claim = Field(
        default="", description="claim with several users, or *; if a token has it, user_claim is not read"
    )
    scopes_claim: Annotated[Claim, Field(min_length=1)] = Field(
        default="scope", description="claim with the scopes read, write, admin"
    )
    scope_prefix: Claim = Field(default="", description="prefix of our scopes in that claim, such as `siltstone:`")
    leeway_seconds: Annotated[int, Field(ge=0, le=300)] = Field(
        default=30, description="allowed difference between clocks"
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Reject an issuer without an audience, and an audience or a key URL without an issuer.

        Without an audience, a token that the issuer made for another API would be valid for this API too.
        """
        if self.issuer and not self.audience:
            raise ValueError(
                "audience: is empty: set it to this API's name in the tokens' aud; otherwise any token of the issuer "
                "is valid"
            )
        if not self.issuer and (self.audience or self.jwks_url):
            raise ValueError("issuer: is empty, but audience or jwks_url is set: set the issuer, or remove them")
        return self
