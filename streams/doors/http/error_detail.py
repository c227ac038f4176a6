"""The reason of an API refusal as one line, from its JSON body."""

from __future__ import annotations

import orjson

SHOWN_CHARS = 200


def detail_of(content: bytes) -> str:
    """Return the text in `detail`. If the response has no such text, return its first `SHOWN_CHARS` bytes as text.

    >>> detail_of(b'{"detail": "top_k: too small"}')
    'top_k: too small'
    """
    try:
        detail = orjson.loads(content)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = None
    return detail if isinstance(detail, str) else content[:SHOWN_CHARS].decode(errors="replace")
