"""The memory limit of a worker's databases and caches, and the share of each.

Vectors, windows and other data need memory in addition to this limit: see `docs/scale.md`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tables.database.database import BRIEFLY
from tables.search.recent import RECENT_BYTES

#: The minimum memory of a shard's database, in bytes. This is enough to recompute and clean up a catalog of a few
#: hundred thousand memories.
LEAST_FOR_A_SHARD: Final = 256 << 20

#: The files in which Linux shows the memory limit of the container.
_CGROUP_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """The memory `limit` and its shares, in bytes.

    `caches` is for the data of recently searched users, `copies` for the creation of the analysts' copy.
    """

    limit: int
    caches: int
    copies: int

    @classmethod
    def of(cls, limit: int) -> MemoryShares:
        return cls(limit, min(limit // 16, RECENT_BYTES), min(limit // 8, BRIEFLY))

    def a_shard(self, shards: int) -> int:
        """Return the bytes for the database of each shard, if this number of shards is open."""
        return max(LEAST_FOR_A_SHARD, (self.limit - self.caches - self.copies) // max(1, shards))

    def needed(self, shards: int) -> int:
        """Return the bytes for this number of shards, the caches and the copies.

        The result is more than `limit` if `limit` is too small for so many shards.
        """
        return self.caches + self.copies + shards * self.a_shard(shards)


def memory_here() -> int:
    """Return the memory of this machine, or the limit of this container if it is lower, in bytes."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # without a limit, the file is missing or contains "max"
            limits.append(int(path.read_text()))
    return min(limits)


def shares(limit: int | None) -> MemoryShares:
    """Return the shares of `limit` bytes. If `limit` is None, share out half of this machine's memory.

    The other half is for vectors, windows and other data.
    """
    return MemoryShares.of(memory_here() // 2 if limit is None else limit)


def in_units(size: int) -> str:
    """Return a number of bytes in GiB or MiB, for people."""
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size >> 20} MiB"
