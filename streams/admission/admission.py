"""Who asks: every way in has its principal from here, whatever the request proves it with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from schemas.errors import TokenRefused
from streams.admission.authorize import Principal
from streams.admission.known_tokens import REFUSED, KnownTokens

#: A longer secret is not looked at: characters.
LONGEST_SECRET: Final = 8192


class Admission:
    """Asked before each request. An HTTP request brings its secret in a header; `principal` is for other ways in."""

    def __init__(self, tokens: KnownTokens) -> None:
        self._tokens = tokens

    async def asking(self, headers: Iterable[tuple[bytes, bytes]]) -> Principal:
        """Whose request it is that has these headers (ASGI's). Raises `TokenRefused` and `NotReady`."""
        return await self.principal(bearer(headers))

    async def principal(self, secret: str) -> Principal:
        """Whose secret it is. Raises `TokenRefused`, with one text for whatever is wrong with it, and `NotReady`."""
        if len(secret) > LONGEST_SECRET:
            raise TokenRefused(REFUSED)
        return self._tokens.principal(secret)


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The secret in `Authorization: Bearer …`. Raises `TokenRefused` where there is none, or more than one."""
    given = [value for name, value in headers if name == b"authorization"]
    kind, _, secret = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
    if kind.lower() != "bearer" or not secret.strip():
        raise TokenRefused(REFUSED)
    return secret.strip()
