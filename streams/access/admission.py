"""Authentication: every entry point gets the principal of a request from here, for each kind of token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from schemas.errors import TokenRefused
from schemas.tokens import PREFIX
from streams.access.authorize import Principal
from streams.access.known_tokens import REFUSED, KnownTokens

if TYPE_CHECKING:
    from streams.access.oidc import OidcTokens

#: The maximum length of a secret, in characters. A longer secret is refused without a check.
LONGEST_SECRET: Final = 8192


class Admission:
    """Authenticates each request. An HTTP request has its secret in a header; other entry points call `principal`."""

    def __init__(self, tokens: KnownTokens, oidc: OidcTokens | None = None) -> None:
        self._tokens, self._oidc = tokens, oidc

    async def asking(self, headers: Iterable[tuple[bytes, bytes]]) -> Principal:
        """The principal of a request with these (ASGI) headers. Raises `TokenRefused` and `NotReady`."""
        return await self.principal(bearer(headers))

    async def principal(self, secret: str) -> Principal:
        """The principal of a secret. Raises `TokenRefused`, with the same text for every fault, and `NotReady`.

        Only a secret without the prefix of our own tokens is checked with the provider's keys. So our tokens still
        work if the provider does not answer.
        """
        if len(secret) > LONGEST_SECRET:
            raise TokenRefused(REFUSED)
        if self._oidc is not None and not secret.startswith(f"{PREFIX}_"):
            return await self._oidc.principal(secret)
        return self._tokens.principal(secret)


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The secret in `Authorization: Bearer …`, or in `Token …`, which mem0's clients send.

    Raises `TokenRefused` if there is none, or more than one.
    """
    given = [value for name, value in headers if name == b"authorization"]
    kind, _, secret = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
    if kind.lower() not in ("bearer", "token") or not secret.strip():
        raise TokenRefused(REFUSED)
    return secret.strip()
