"""JSON encoding of keys and rows that stay in memory. The bytes that orjson returns would occupy about 4 KB each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import orjson
from msgspec.structs import astuple

from schemas.exchanges import Message


def compact_json(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """Encode a value with `orjson.dumps`, and return a copy of the bytes that holds no unused memory.

    Use it for keys and rows that stay in memory, or that wait in memory to be written.
    """
    return bytes(memoryview(orjson.dumps(value, default)))


# Rows are JSON arrays of the fields in order. They have half the size of JSON objects, and are encoded in a third of
# the time. msgspec takes half of orjson's time. It writes the same bytes, except for floats. Only metadata has them.
_encode: Final = msgspec.json.Encoder().encode


def encode_row(row: Any, messages: tuple[Message, ...]) -> bytes:
    """Encode a row that contains these messages.

    If one of the messages has metadata, use orjson, because msgspec writes floats in another form.
    """
    for message in messages:
        if message.metadata:
            return compact_json(row, astuple)
    return _encode(row)
