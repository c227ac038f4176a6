"""Why the API refuses, as one line: from the JSON that it refuses with."""

from __future__ import annotations

import orjson

SHOWN_CHARS = 200


def detail_of(content: bytes) -> str:
    """The API's own text; what is no refusal of the API is shown from its beginning.

    >>> detail_of(b'{"detail": "top_k: too small"}')
    'top_k: too small'
    """
    try:
        detail = orjson.loads(content)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = None
    return detail if isinstance(detail, str) else content[:SHOWN_CHARS].decode(errors="replace")
