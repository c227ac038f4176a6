"""JSON that is kept: orjson's own bytes keep a buffer of some 4 KB for as long as they live."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson


def compact_json(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """What `orjson.dumps` gives, in as many bytes of memory as it has: for keys and rows that stay, or wait."""
    return bytes(memoryview(orjson.dumps(value, default)))
