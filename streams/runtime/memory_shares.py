"""Memory limits of a worker's databases and caches, in total and of each.

Vectors, windows and other data in memory come on top: `docs/scale.md` says how much.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tables.database.database import BRIEFLY
from tables.search.recent import RECENT_BYTES

#: Enough to recompute and clean up a catalog of a few hundred thousand memories.
LEAST_FOR_A_SHARD: Final = 256 << 20

#: Where Linux shows the memory limit of the container.
_CGROUP_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """All in bytes. `caches` is for recently searched users, `copies` for making the analysts' copy."""

    limit: int
    caches: int
    copies: int

    @classmethod
    def of(cls, limit: int) -> MemoryShares:
        return cls(limit, min(limit // 16, RECENT_BYTES), min(limit // 8, BRIEFLY))

    def a_shard(self, shards: int) -> int:
        """Return the bytes for the database of each shard, if `shards` are open."""
        return max(LEAST_FOR_A_SHARD, (self.limit - self.caches - self.copies) // max(1, shards))

    def needed(self, shards: int) -> int:
        """Return the bytes for `shards` shards and everything else; more than `limit` if that is too small."""
        return self.caches + self.copies + shards * self.a_shard(shards)


def memory_here() -> int:
    """Return the memory of this machine, or of this container, in bytes."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # no limit is "max", or no file
            limits.append(int(path.read_text()))
    return min(limits)


def shares(limit: int | None) -> MemoryShares:
    """Return the shares of `memory_limit`. Default: half of the memory; vectors, windows and others need the rest."""
    return MemoryShares.of(memory_here() // 2 if limit is None else limit)


def in_units(size: int) -> str:
    """Return a number of bytes in GiB or MiB, for people."""
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size >> 20} MiB"
