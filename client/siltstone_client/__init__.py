"""The Python client of Siltstone: conversation memory over HTTP.

>>> from siltstone_client import Memory
>>> with Memory("http://127.0.0.1:8000") as memory:  # doctest: +SKIP
...     memory.remember("I live in Oslo", user_id="ann", wait=True)
...     memory.search("where does she live?", user_id="ann").results[0].memory
'I live in Oslo'
"""

from __future__ import annotations

from siltstone_client.async_memory import AsyncMemory
from siltstone_client.errors import (
    InvalidRequest,
    NotFound,
    NotYetApplied,
    Refused,
    ScopeMissing,
    ServerError,
    SiltstoneError,
    TokenRefused,
    Unavailable,
    Unreachable,
    UnreadableAnswer,
)
from siltstone_client.memory import Memory
from siltstone_client.retrying import Retries
from siltstone_client.version import VERSION

__version__ = VERSION

__all__ = [
    "AsyncMemory",
    "InvalidRequest",
    "Memory",
    "NotFound",
    "NotYetApplied",
    "Refused",
    "Retries",
    "ScopeMissing",
    "ServerError",
    "SiltstoneError",
    "TokenRefused",
    "Unavailable",
    "Unreachable",
    "UnreadableAnswer",
    "__version__",
]
