"""The URL of the object store for checkpoints, in the form that API answers and error texts show."""

from __future__ import annotations

from urllib.parse import urlsplit


def shown_store(url: str) -> str:
    """Return a store's URL without secrets. A folder is shown without its path, a bucket without credentials.

    >>> shown_store("file:///var/lib/siltstone/checkpoints"), shown_store("s3://key:secret@bucket/prefix")
    ('file://…/checkpoints', 's3://bucket/prefix')
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return f"file://…/{parts.path.rpartition('/')[2]}"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if url else ""
