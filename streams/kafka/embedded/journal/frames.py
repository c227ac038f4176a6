"""Frames of an append-only file: length, checksum, bytes.

A crash may leave a partial frame at the end of the file. Its length or its checksum shows this. All frames before it
are complete.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

_HEAD: Final = struct.Struct("<II")
HEAD_BYTES: Final = _HEAD.size
#: Maximum bytes of a frame's body. A frame with a greater length is damaged, because the largest Kafka
#: record, with its key and headers, has little more than 8 MiB.
MOST_BYTES: Final = 256 * 1024 * 1024


def framed(*parts: bytes) -> bytes:
    """Return one frame whose body is the concatenation of these parts.

    >>> len(framed(b"ab", b"c")) - HEAD_BYTES
    3
    """
    body = b"".join(parts)
    if not 0 < len(body) <= MOST_BYTES:
        raise ValueError(f"a frame has 1 to {MOST_BYTES} bytes, not {len(body)}")
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def read_frames(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield (offset of the body in the file, body) of each frame, up to the first partial or damaged frame."""
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
