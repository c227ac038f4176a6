"""Returns unused memory to the operating system, because allocators keep memory that was needed for a moment.

A scan of a million rows needs a hundred megabytes for some tenths of a second. Without `give_back`, the process would
keep this memory until it ends, once for each thread that has made such a scan.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

import pyarrow as pa


def give_back() -> None:
    """Release the unused memory of Arrow's pool and, if the C library is glibc, of its heap."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # not every Linux has glibc
            ctypes.CDLL(None).malloc_trim(0)
