"""How an answer shows where checkpoints lie."""

from __future__ import annotations

from urllib.parse import urlsplit


def shown_store(url: str) -> str:
    """Of a folder its name alone, not where it is on the machine; of a bucket not who may get in.

    >>> shown_store("file:///var/lib/siltstone/checkpoints"), shown_store("s3://key:secret@bucket/prefix")
    ('file://…/checkpoints', 's3://bucket/prefix')
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return f"file://…/{parts.path.rpartition('/')[2]}"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if url else ""
