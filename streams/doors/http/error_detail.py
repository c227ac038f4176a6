"""Read the reason of a refusal from the JSON body of an API response."""

from __future__ import annotations

import orjson

SHOWN_CHARS = 200


def detail_of(content: bytes) -> str:
    """Return the text in the field `detail` of a response's body.

    If the body has no such text, return its first `SHOWN_CHARS` bytes as text.

    >>> detail_of(b'{"detail": "top_k: too small"}')
    'top_k: too small'
    """
    try:
        detail = orjson.loads(content)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = None
    return detail if isinstance(detail, str) else content[:SHOWN_CHARS].decode(errors="replace")
