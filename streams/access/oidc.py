"""Checks the tokens of an OpenID Connect provider, and reads users and scopes from their claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import jwt
from pydantic import TypeAdapter, ValidationError

from schemas.errors import TokenRefused
from schemas.ids import Id
from schemas.settings.oidc import OidcSettings
from schemas.tokens import EVERYBODY, Scope
from streams.access.authorize import Principal
from streams.access.known_tokens import REFUSED

#: The prefix of a principal's name if its token is from the provider. It distinguishes these principals from the
#: principals of our own tokens.
OIDC: Final = "oidc/"
_LONGEST_KEY_ID: Final = 256
_ID: Final[TypeAdapter[str]] = TypeAdapter(Id)


class Keys(Protocol):
    """The public keys with which the provider's tokens are verified."""

    async def key(self, kid: str) -> jwt.PyJWK | None:
        """Return the key with the id `kid`, or None if the provider has no such key. Raises `ProviderUnavailable`."""


class OidcTokens:
    """Checks a token's signature, issuer, audience and times, then reads its claims. It stores no token."""

    def __init__(self, oidc: OidcSettings, keys: Keys) -> None:
        self._oidc, self._keys = oidc, keys

    async def principal(self, secret: str) -> Principal:
        """Return the principal of a token. Raises `ProviderUnavailable`, and `TokenRefused` for every other fault."""
        try:
            key = await self._keys.key(self._key_id(secret))
            if key is None:
                raise TokenRefused(REFUSED)
            claims = jwt.decode(
                secret,
                key,
                algorithms=self._oidc.algorithms,
                audience=self._oidc.audience,
                issuer=self._oidc.issuer,
                leeway=self._oidc.leeway_seconds,
                options={"require": ["exp", "iss", "aud"]},
            )
            return principal_of(claims, self._oidc)
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as exc:
            raise TokenRefused(REFUSED) from exc

    def _key_id(self, secret: str) -> str:
        """Return the id of the key that signed the token, from the token's header.

        Raises `TokenRefused` if the token's algorithm is not allowed. So such a token causes no request for keys.
        """
        header = jwt.get_unverified_header(secret)
        kid = header.get("kid")
        if header.get("alg") not in self._oidc.algorithms or not isinstance(kid, str) or len(kid) > _LONGEST_KEY_ID:
            raise TokenRefused(REFUSED)
        return kid


def principal_of(claims: Mapping[str, Any], oidc: OidcSettings) -> Principal:
    """Build the principal from a token's claims. Raises `ValueError` if they name no user.

    `*` means all users only in `users_claim`. In `user_claim` it is refused, because a user could have chosen this
    name.
    """
    several = claims.get(oidc.users_claim) if oidc.users_claim else None
    if several is None:
        users = [_ID.validate_python(claims.get(oidc.user_claim))]
        if EVERYBODY in users:
            raise ValueError("a user cannot be everybody")
    else:
        listed = several if isinstance(several, list) else [several]
        users = [one if one == EVERYBODY else _ID.validate_python(one) for one in listed]
    if not users:
        raise ValueError("the token names no user")
    given = claims.get(oidc.scopes_claim, "")
    words = given if isinstance(given, list) else str(given).split()
    scopes = [scope for scope in Scope if f"{oidc.scope_prefix}{scope.value}" in words]
    return Principal.of(OIDC + _client(claims), users, scopes)


def _client(claims: Mapping[str, Any]) -> str:
    """Return the application that got the token (`azp` or `client_id`), else the token's subject, else `-`."""
    for name in ("azp", "client_id", "sub"):
        try:
            return _ID.validate_python(claims.get(name))
        except ValidationError:
            continue
    return "-"
