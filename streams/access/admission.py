"""Authentication: finds the principal of a request by its token, which is our own or an OIDC provider's."""

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
    """Authenticates requests. `asking` reads the secret from HTTP headers; `principal` gets the secret itself."""

    def __init__(self, tokens: KnownTokens, oidc: OidcTokens | None = None) -> None:
        self._tokens, self._oidc = tokens, oidc

    async def asking(self, headers: Iterable[tuple[bytes, bytes]]) -> Principal:
        """Return the principal of an HTTP request with these ASGI headers. Raises `TokenRefused` and `NotReady`."""
        return await self.principal(bearer(headers))

    async def principal(self, secret: str) -> Principal:
        """Return the principal of a secret. Raises `NotReady`, and `TokenRefused` with one text for every fault.

        Only a secret without the prefix of our own tokens is checked with the keys of the OIDC provider. So our own
        tokens still work if the provider does not answer.
        """
        if len(secret) > LONGEST_SECRET:
            raise TokenRefused(REFUSED)
        if self._oidc is not None and not secret.startswith(f"{PREFIX}_"):
            return await self._oidc.principal(secret)
        return self._tokens.principal(secret)


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the secret in the header `Authorization: Bearer …` or `Authorization: Token …`.

    mem0's clients send the second form. Raises `TokenRefused` if there is no secret, or more than one such header.
    """
    given = [value for name, value in headers if name == b"authorization"]
    kind, _, secret = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
    if kind.lower() not in ("bearer", "token") or not secret.strip():
        raise TokenRefused(REFUSED)
    return secret.strip()
