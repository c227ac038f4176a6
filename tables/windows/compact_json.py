"""JSON that is kept: orjson's own bytes keep a buffer of some 4 KB for as long as they live."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import orjson
from msgspec.structs import astuple

from schemas.exchanges import Message


def compact_json(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """What `orjson.dumps` gives, in as many bytes of memory as it has: for keys and rows that stay, or wait."""
    return bytes(memoryview(orjson.dumps(value, default)))


# Rows are JSON arrays of the fields in their order: half as large as objects, and written in a third of the time.
# msgspec writes them in half of orjson's time, and the same bytes but for floats, which are in metadata alone.
_encode: Final = msgspec.json.Encoder().encode


def encode_row(row: Any, messages: tuple[Message, ...]) -> bytes:
    """A row that holds these messages."""
    for message in messages:
        if message.metadata:
            return compact_json(row, astuple)
    return _encode(row)
