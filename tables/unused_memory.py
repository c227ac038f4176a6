"""Returns unused memory to the system: allocators keep memory that was needed only for a moment.

A scan of a million rows takes a hundred megabytes for some tenths of a second. Without this, the process would keep
them for its lifetime, once for each thread that had them.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

import pyarrow as pa


def give_back() -> None:
    """Release Arrow's pool and the C library's free heap, as far as the library can."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # not every Linux has glibc
            ctypes.CDLL(None).malloc_trim(0)
