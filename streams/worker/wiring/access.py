"""Access to a worker: the known tokens, and the parts that keep them up to date."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from schemas.settings import Settings
from schemas.times import now_ms
from schemas.tokens import TokenRecord
from streams.access.admission import Admission
from streams.access.known_tokens import KnownTokens
from streams.access.token_log import TokenFollower

if TYPE_CHECKING:
    from streams.access.oidc_provider import ProviderKeys


class Access:
    """The check of tokens, and the parts that keep the known tokens up to date.

    `admission` is None if no tokens are required. Tokens expire by the system's clock, not by the lifecycle's clock.
    """

    def __init__(self, settings: Settings) -> None:
        self.admission: Admission | None = None
        self._follower: TokenFollower | None = None
        self._keys: ProviderKeys | None = None
        if not settings.access.tokens:
            return
        known, oidc = KnownTokens(now_ms), None
        if settings.access.oidc.issuer:
            from streams.access.oidc import OidcTokens  # imported only if needed: it takes a tenth of a second
            from streams.access.oidc_provider import ProviderKeys, fetched_keys

            self._keys = ProviderKeys(partial(fetched_keys, settings.access.oidc), time.monotonic)
            oidc = OidcTokens(settings.access.oidc, self._keys)
        self.admission = Admission(known, oidc)
        self._follower = TokenFollower(settings.kafka, known.fill, partial(_told, known))

    def start(self) -> None:
        """Start reading the tokens' topic. Call this once the broker has been found."""
        if self._follower is not None:
            self._follower.start()

    async def close(self) -> None:
        for part in (self._follower, self._keys):
            if part is not None:
                await part.close()


def _told(known: KnownTokens, identity: str, record: TokenRecord | None) -> None:
    if record is None:
        known.drop(identity)
    else:
        known.take(record)
