"""How much memory a worker's databases and caches may take together, and each of them.

Vectors, windows and what else must be at hand are data, and come on top: `docs/scale.md` says how much.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tables.database.database import BRIEFLY
from tables.search.recent import RECENT_BYTES

#: A catalog of a few hundred thousand memories can be recomputed and cleaned up with this.
LEAST_FOR_A_SHARD: Final = 256 << 20

#: What the machine or the container gives, as Linux says it.
_CGROUP_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """All in bytes. `caches`: of the users who were asked about last; `copies`: of the analysts' copy, while made."""

    limit: int
    caches: int
    copies: int

    @classmethod
    def of(cls, limit: int) -> MemoryShares:
        return cls(limit, min(limit // 16, RECENT_BYTES), min(limit // 8, BRIEFLY))

    def a_shard(self, shards: int) -> int:
        """What each of so many shards that are open has for its database."""
        return max(LEAST_FOR_A_SHARD, (self.limit - self.caches - self.copies) // max(1, shards))

    def needed(self, shards: int) -> int:
        """What so many shards and all else come to; more than `limit` where it is too small for them."""
        return self.caches + self.copies + shards * self.a_shard(shards)


def memory_here() -> int:
    """What this machine, or this container, has: bytes."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # no limit is "max", or no file
            limits.append(int(path.read_text()))
    return min(limits)


def shares(limit: int | None) -> MemoryShares:
    """Those of `memory_limit`. Where it is not set, half of what is here: vectors, windows and others need theirs."""
    return MemoryShares.of(memory_here() // 2 if limit is None else limit)


def in_units(size: int) -> str:
    """As people say it."""
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size >> 20} MiB"
