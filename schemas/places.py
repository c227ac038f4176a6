"""Where a record lies in the log, and the consistency token that says so to a client."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from schemas.errors import ConsistencyTokenError

#: Longer ones are none of ours: a topic's name has at most 249 characters.
MAX_TOKEN_CHARS: Final = 400
#: Of a partition and of an offset, as Kafka counts them.
_MAX_PARTITION, _MAX_OFFSET = 2**31, 2**63
_CHECK_BYTES: Final = 4


class Place(NamedTuple):
    """Where a record lies in the log.

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
        """For clients: one word, without a meaning of its own. Its checksum tells a damaged one, and is no secret."""
        plain = f"{self.partition}:{self.offset}:{self.topic}".encode()
        return urlsafe_b64encode(_check(plain) + plain).decode().rstrip("=")

    @classmethod
    def of_token(cls, token: str) -> Self:
        """Raises `ConsistencyTokenError` where it is none, or damaged."""
        damaged = ConsistencyTokenError(
            "at_least: this is no consistency token, or a damaged one: give it as it came"
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
    """Of each topic's partition the last one: what lies before it is in when it is."""
    found: dict[tuple[str, int], Place] = {}
    for place in places:
        before = found.setdefault(place[:2], place)
        if place.offset > before.offset:
            found[place[:2]] = place
    return list(found.values())


def _check(plain: bytes) -> bytes:
    return binascii.crc32(plain).to_bytes(_CHECK_BYTES, "big")
