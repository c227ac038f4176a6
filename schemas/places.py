"""Places of records in the log (topic, partition, offset), and the consistency tokens that clients use for them."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from schemas.errors import ConsistencyTokenError

#: The maximum length of a consistency token. Ours are shorter, because a topic's name has at most 249 characters.
MAX_TOKEN_CHARS: Final = 400
#: The exclusive upper limits of Kafka's partition numbers and offsets.
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
        """The consistency token of this place: an opaque text for clients, with a checksum. It is not a secret."""
        plain = f"{self.partition}:{self.offset}:{self.topic}".encode()
        return urlsafe_b64encode(_check(plain) + plain).decode().rstrip("=")

    @classmethod
    def of_token(cls, token: str) -> Self:
        """Return the place that a consistency token names.

        Raises `ConsistencyTokenError` if the token is damaged, or is not a consistency token.
        """
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
    """Return the place with the highest offset in each partition of each topic.

    If the record at this place is applied, the records at all earlier places of the partition are applied too.
    """
    found: dict[tuple[str, int], Place] = {}
    for place in places:
        before = found.setdefault(place[:2], place)
        if place.offset > before.offset:
            found[place[:2]] = place
    return list(found.values())


def _check(plain: bytes) -> bytes:
    return binascii.crc32(plain).to_bytes(_CHECK_BYTES, "big")
