"""Who may ask a worker: what it knows of tokens, and what keeps that up to date."""

from __future__ import annotations

from schemas.settings import Settings
from schemas.tokens import TokenRecord
from streams.admission.admission import Admission
from streams.admission.known_tokens import KnownTokens
from streams.clients.token_log import TokenFollower
from streams.clock import now_ms


def access(settings: Settings) -> tuple[Admission | None, TokenFollower | None]:
    """Nothing where no tokens are asked for. Tokens expire by the wall clock, whatever the lifecycle's is."""
    if not settings.access.tokens:
        return None, None
    known = KnownTokens(now_ms)

    def told(identity: str, record: TokenRecord | None) -> None:
        if record is None:
            known.drop(identity)
        else:
            known.take(record)

    def through() -> None:
        known.complete = True

    return Admission(known), TokenFollower(settings.kafka, told, through)
