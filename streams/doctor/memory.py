"""The doctor's check of main memory: is there enough for a worker's databases and caches?"""

from __future__ import annotations

from collections.abc import Callable

from schemas.settings import Settings
from streams.doctor.finding import Finding, ok, warning
from streams.runtime.memory_shares import in_units, memory_here, shares

CHECK = "memory"


def check_memory(settings: Settings, here: Callable[[], int] = memory_here) -> list[Finding]:
    """Check the memory limits of a single worker that owns all partitions.

    `here` returns the memory of the machine or container in bytes. If more workers run, each one owns fewer shards,
    so each shard gets more memory.
    """
    there, shards = here(), settings.kafka.partitions
    shared = shares(settings.memory_limit or there // 2)
    vectors = sum(path.stat().st_size for path in (settings.data_dir / "shards").glob("*/segments/*.ivf"))
    limit = f"memory_limit {in_units(shared.limit)} of {in_units(there)}"
    if settings.memory_limit is None:
        limit += " (half of it, the default)"
    parts = (
        f"{in_units(shared.a_shard(shards))} for the database of each of {shards} shards, "
        f"{in_units(shared.caches)} for the caches of recently searched users, "
        f"{in_units(shared.copies)} for the analysts' copy"
    )
    beside = (
        f"; windows need memory in addition; vectors ({in_units(vectors)} so far) are memory-mapped, "
        "and fast if they fit into the rest"
    )
    what = f"{limit}: {parts}{beside}"
    if (needed := shared.needed(shards)) > shared.limit:
        return [warning(CHECK, what, f"set memory_limit to {in_units(needed)} or more, or start more workers")]
    if shared.limit >= there:
        return [
            warning(CHECK, what, "set a smaller memory_limit, give the worker more memory, or start more workers")
        ]
    return [ok(CHECK, what)]
