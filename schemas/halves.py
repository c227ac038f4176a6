"""Halves: lone surrogates, for example of an emoji that was cut in two. We remove them from all texts.

JSON can contain halves, as `\\ud83d`, and Python reads them. UTF-8 cannot encode them, so a text with a half could
not be stored.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

_ESCAPED: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_HALF: Final = re.compile("[\ud800-\udfff]")


def without_halves(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate. Two halves that form a pair become one character."""
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def json_text(value: Any) -> str:
    """Return the value as JSON text. Lone surrogates in its texts become U+FFFD."""
    return without_halves(json.dumps(value, ensure_ascii=False))


def read_json(raw: bytes) -> Any:
    """Return the decoded JSON. Lone surrogates in its texts become U+FFFD.

    Raises `orjson.JSONDecodeError` for all other faults of the JSON.
    """
    return mended(raw)[0]


def mended(raw: bytes) -> tuple[Any, bytes]:
    """Return the decoded JSON, without lone surrogates, and the bytes of this JSON.

    The bytes are `raw` itself if `raw` has no lone surrogates. Raises `orjson.JSONDecodeError` for all other faults.
    """
    try:
        return orjson.loads(raw), raw
    except orjson.JSONDecodeError:
        if not _ESCAPED.search(raw):
            raise
        try:
            value = json.loads(raw, parse_constant=_refuse)
            whole = json_text(value).encode()
            return orjson.loads(whole), whole
        except (ValueError, RecursionError):
            pass
        raise


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
