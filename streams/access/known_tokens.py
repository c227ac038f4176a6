"""A worker's copy of all API tokens. Each request's secret is checked against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from schemas.errors import NotReady, TokenRefused
from schemas.tokens import Scope, TokenRecord, id_of
from streams.access.authorize import Principal

#: The text of the error for every fault of a token. It is always the same, so it does not reveal which ids exist.
REFUSED: Final = "this requires a valid token, as `Authorization: Bearer slt_…`: siltstone token add makes one"
#: A secret with an unknown id is compared with this token, so that its refusal takes the same time as that of a
#: secret with a known id.
_NOBODY: Final = TokenRecord(id="0" * 16, name="-", sha256="0" * 64, users=("-",), scopes=(Scope.READ,), created_at=0)


class KnownTokens:
    """All tokens of the topic of tokens. `principal` checks a request's secret. `clock` gives epoch milliseconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._records: dict[str, TokenRecord] = {}
        #: True once `fill` was called, so all tokens that the topic had when the worker started to read are known.
        self.complete = False

    def fill(self, records: Mapping[str, TokenRecord]) -> None:
        """Replace all known tokens by `records`, which has all tokens of the topic by id."""
        self._records, self.complete = dict(records), True

    def take(self, record: TokenRecord) -> None:
        """Store the new record of a token, which replaces its earlier record."""
        self._records[record.id] = record

    def drop(self, identity: str) -> None:
        """Remove a token whose record was deleted."""
        self._records.pop(identity, None)

    def principal(self, secret: str) -> Principal:
        """Return the principal of a secret. Raises `TokenRefused`, and `NotReady` until the topic has been read."""
        if not self.complete:
            raise NotReady("the tokens have not been read yet; ask again")
        found = self._records.get(id_of(secret) or "")
        opened = (found or _NOBODY).opened_by(secret)
        if found is None or not opened or not found.valid(self._clock()):
            raise TokenRefused(REFUSED)
        return Principal.of(found.name, found.users, found.scopes)
