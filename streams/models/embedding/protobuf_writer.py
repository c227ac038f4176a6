"""Writes messages in the protobuf wire format: https://protobuf.dev/programming-guides/encoding/.

A message is the concatenation of its fields, so it needs no schema. Numbers of the fields come from the format's
`.proto` file.
"""

from __future__ import annotations

import struct

_VARINT, _LENGTH, _FIXED32 = 0, 2, 5


def varint(number: int) -> bytes:
    """Encode a number of at least 0 in base 128, the lowest digits first.

    >>> varint(300)
    b'\\xac\\x02'
    """
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def integer(field: int, value: int) -> bytes:
    """Return a field of a type such as int32, int64, bool or an enumeration."""
    return varint(field << 3 | _VARINT) + varint(value)


def float32(field: int, value: float) -> bytes:
    return varint(field << 3 | _FIXED32) + struct.pack("<f", value)


def head(field: int, size: int) -> bytes:
    """Return the beginning of a field of `size` bytes, or with a message of this size. These bytes follow it."""
    return varint(field << 3 | _LENGTH) + varint(size)


def message(field: int, *parts: bytes) -> bytes:
    """Return a field with bytes, or with a message of these fields."""
    content = b"".join(parts)
    return head(field, len(content)) + content


def string(field: int, text: str) -> bytes:
    return message(field, text.encode())
