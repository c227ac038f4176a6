"""Why the API refuses, as one line: from the JSON that it refuses with."""

from __future__ import annotations

import orjson

SHOWN_CHARS = 200


def detail_of(content: bytes) -> str:
    """A field that is wrong is named with what is wrong; what is no answer of the API is shown from its beginning.

    >>> detail_of(b'{"detail": [{"loc": ["body", "top_k"], "msg": "too small"}]}')
    'top_k: too small'
    """
    try:
        detail = orjson.loads(content)["detail"]
        if isinstance(detail, list):
            return "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in detail)
        return str(detail)
    except (ValueError, KeyError, TypeError):
        return content[:SHOWN_CHARS].decode(errors="replace")
