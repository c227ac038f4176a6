"""Places of records in the log, and the consistency token by which a client names one."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from schemas.errors import ConsistencyTokenError

#: Longer tokens are not ours: a topic's name has at most 249 characters.
MAX_TOKEN_CHARS: Final = 400
#: Upper limits of Kafka's partitions and offsets.
_MAX_PARTITION, _MAX_OFFSET = 2**31, 2**63
_CHECK_BYTES: Final = 4


class Place(NamedTuple):
    """A record's place in the log.

    >>> place = Place("siltstone.long-term", 3, 17)
    >>> Place.of_token(place.token) == place
    True
    """

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"

    @property
    def token(self) -> str:
        """The consistency token for clients, an opaque word with a checksum against damage. It is no secret."""
        plain = f"{self.partition}:{self.offset}:{self.topic}".encode()
        return urlsafe_b64encode(_check(plain) + plain).decode().rstrip("=")

    @classmethod
    def of_token(cls, token: str) -> Self:
        """Decode a token. Raises `ConsistencyTokenError` if it is damaged or not a consistency token."""
        damaged = ConsistencyTokenError(
            "at_least: not a consistency token, or a damaged one: pass it exactly as the write returned it"
        )
        if len(token) > MAX_TOKEN_CHARS:
            raise damaged
        try:
            raw = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
            check, plain = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
            partition, offset, topic = plain.decode().split(":", 2)
            place = cls(topic, int(partition), int(offset))
        except (ValueError, binascii.Error):
            raise damaged from None
        sound = check == _check(plain) and 0 <= place.partition < _MAX_PARTITION and 0 <= place.offset < _MAX_OFFSET
        if not sound or place.token != token:
            raise damaged
        return place


def newest(places: Iterable[Place]) -> list[Place]:
    """Return the last place in each partition of each topic. If it is applied, all earlier places are applied."""
    found: dict[tuple[str, int], Place] = {}
    for place in places:
        before = found.setdefault(place[:2], place)
        if place.offset > before.offset:
            found[place[:2]] = place
    return list(found.values())


def _check(plain: bytes) -> bytes:
    return binascii.crc32(plain).to_bytes(_CHECK_BYTES, "big")
