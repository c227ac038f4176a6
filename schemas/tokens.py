"""Access tokens, which give rights at a worker's API. A token's secret is shown once; only its SHA-256 is stored.

A secret has the form `slt_<id>_<43 characters>`. The id finds the token's record, and the 43 characters encode 32
random bytes.
"""

from __future__ import annotations

import hmac
import secrets
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from schemas.ids import Id

PREFIX: Final = "slt"
#: The entry in a token's `users` that stands for all users.
EVERYBODY: Final = "*"
_ID_BYTES: Final = 8
_SECRET_BYTES: Final = 32


class Scope(StrEnum):
    """A kind of request that a token permits. No scope includes another."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class TokenRecord(BaseModel):
    """A token, as the topic of tokens has it; the record's key is its id. Times are epoch milliseconds."""

    model_config = ConfigDict(frozen=True)

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    name: Annotated[str, Field(min_length=1, max_length=256)]
    sha256: Annotated[
        str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the whole secret, in hexadecimal digits")
    ]
    users: Annotated[
        tuple[Id, ...], Field(min_length=1, description="users whose memories it covers; * for all users")
    ]
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None

    def valid(self, now: int) -> bool:
        """True if the token is neither revoked nor expired at `now` (epoch ms)."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def opened_by(self, secret: str) -> bool:
        """True if `secret` is this token's secret. The comparison takes constant time."""
        return hmac.compare_digest(digest(secret), self.sha256)


class Issued(NamedTuple):
    """A new token: its id, its secret, and the SHA-256 of the secret. The secret itself is not stored."""

    id: str
    secret: str
    sha256: str


def issue() -> Issued:
    """Return a new token with a secret of 256 random bits."""
    identity = secrets.token_hex(_ID_BYTES)
    secret = f"{PREFIX}_{identity}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    return Issued(identity, secret, digest(secret))


def digest(secret: str) -> str:
    """Return the SHA-256 of a secret, in hexadecimal digits."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def id_of(secret: str) -> str | None:
    """Return the token's id in a secret, or None if the text does not have the form of our secrets.

    >>> id_of("slt_00112233445566ff_abc_def")
    '00112233445566ff'
    """
    prefix, _, rest = secret.partition("_")
    identity, separator, _ = rest.partition("_")
    return identity if prefix == PREFIX and separator else None
