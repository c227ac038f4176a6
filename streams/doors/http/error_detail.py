"""The reason of an API refusal as one line, from its JSON body."""

from __future__ import annotations

import orjson

SHOWN_CHARS = 200


def detail_of(content: bytes) -> str:
    """The API's own text; of any other response, the first `SHOWN_CHARS` characters.

    >>> detail_of(b'{"detail": "top_k: too small"}')
    'top_k: too small'
    """
    try:
        detail = orjson.loads(content)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = None
    return detail if isinstance(detail, str) else content[:SHOWN_CHARS].decode(errors="replace")
