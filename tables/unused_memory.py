"""Returns unused memory to the system: allocators keep memory that was needed only for a moment.

A scan of a million rows takes a hundred megabytes for some tenths of a second. Without this, the process would keep
them for as long as it lives, once for each thread that ever had them.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

import pyarrow as pa


def give_back() -> None:
    """Of Arrow's pool and the C library's heaps. Where the library knows no such call, it does what it can."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # not every Linux has glibc
            ctypes.CDLL(None).malloc_trim(0)
