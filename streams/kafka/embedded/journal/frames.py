"""Records of a file that is only ever appended to: length, checksum, bytes.

What a crash leaves at the end is known by its length or its checksum, and everything before it is whole.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

_HEAD: Final = struct.Struct("<II")
HEAD_BYTES: Final = _HEAD.size
#: More is no length that was written: a record of Kafka's and its names have 8 MiB and a few.
MOST_BYTES: Final = 256 * 1024 * 1024


def framed(*parts: bytes) -> bytes:
    """The frame of these bytes, one behind the other.

    >>> len(framed(b"ab", b"c")) - HEAD_BYTES
    3
    """
    body = b"".join(parts)
    if not 0 < len(body) <= MOST_BYTES:
        raise ValueError(f"a frame has 1 to {MOST_BYTES} bytes, not {len(body)}")
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def read_frames(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each frame's body, with the place in the file where it begins, up to the first frame that is not whole."""
    place = file.tell()
    while len(head := file.read(HEAD_BYTES)) == HEAD_BYTES:
        length, checksum = _HEAD.unpack(head)
        if not 0 < length <= MOST_BYTES:
            return
        body = file.read(length)
        if len(body) < length or zlib.crc32(body) != checksum:
            return
        yield place + HEAD_BYTES, body
        place += HEAD_BYTES + length
