"""The doctor's check of the data directory: is it writable, has it free space, and can its shards be opened?"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from schemas.errors import ShardLocked, SiltstoneError
from streams.doctor.finding import Finding, failed, ok, warning
from tables.database.inspection import Inspection, catalogs, inspect_catalog
from tables.partition_record import other_partitions

CHECK, SHARDS = "data", "shards"
#: If fewer bytes are free on the disk, the check warns (`LITTLE_BYTES`) or fails (`NONE_BYTES`). A worker needs free
#: space, because it writes a new index before it deletes the old one, and because DuckDB's write-ahead log grows
#: until DuckDB's next checkpoint.
LITTLE_BYTES, NONE_BYTES = 1 << 30, 64 << 20


@dataclass(slots=True)
class Shards:
    """The shards of a data directory, by partition.

    `read` has the descriptions of shards that could be read. `locked` and `broken` have the reasons why other shards
    could not be read.
    """

    read: dict[int, Inspection] = field(default_factory=dict)
    locked: dict[int, str] = field(default_factory=dict)
    broken: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data_dir: Path) -> Shards:
        shards = cls()
        for partition, path in catalogs(data_dir).items():
            try:
                shards.read[partition] = inspect_catalog(partition, path)
            except ShardLocked as exc:
                shards.locked[partition] = str(exc).partition(": ")[2]
            except SiltstoneError as exc:
                shards.broken[partition] = str(exc)
        return shards


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def check_folder(data_dir: Path, free: Callable[[Path], int] = free_bytes) -> list[Finding]:
    """Check whether the data directory can be written to, and whether its disk has enough free space."""
    standing = data_dir.absolute()
    while not standing.exists() and standing != standing.parent:
        standing = standing.parent
    try:
        _write_something(standing, really=standing == data_dir.absolute())
    except OSError as exc:
        return [failed(CHECK, f"{data_dir} cannot be written to: {exc.strerror or type(exc).__name__}", _rights(exc))]
    left = free(standing)
    room = f"{left / (1 << 30):.1f} GiB free"
    if left < NONE_BYTES:
        return [failed(CHECK, f"{data_dir}: {room}", "free disk space: nothing more can be stored")]
    if left < LITTLE_BYTES:
        return [
            warning(
                CHECK, f"{data_dir}: {room}", "free disk space: saving an index needs its size again for a moment"
            )
        ]
    made = "" if standing == data_dir.absolute() else "; it is created at the first start"
    return [ok(CHECK, f"{data_dir} is writable, {room}{made}")]


def partition_findings(data_dir: Path, partitions: int) -> list[Finding]:
    """Check that `partitions` is the number of partitions that the first worker recorded in the data directory."""
    try:
        wrong = other_partitions(data_dir, partitions)
    except SiltstoneError as exc:
        return [
            failed(CHECK, str(exc), "repair it, or remove the file: the next start writes kafka.partitions to it")
        ]
    return [failed(CHECK, *wrong)] if wrong else []


def _write_something(folder: Path, *, really: bool) -> None:
    """Raise `OSError` if a worker could not write to the folder.

    If `really`, a temporary file is written. Otherwise the data directory does not exist yet, and `folder` is its
    nearest existing parent, of which only the permissions are checked.
    """
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a directory")
    if really:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0")
    elif not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, f"no permission to write to {folder}")


def _rights(exc: OSError) -> str:
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free disk space"
    return "give the worker's user write permission, or choose another directory with data_dir or --data"


def shard_findings(shards: Shards, partitions: int) -> list[Finding]:
    """Report shards that another process has open, that cannot be read, or that belong to no partition."""
    found = [
        failed(SHARDS, why, "repair it, or move it away and rebuild it from the log")
        for why in shards.broken.values()
    ]
    holders: Mapping[str, list[int]] = defaultdict(list)
    for partition, holder in sorted(shards.locked.items()):
        holders[holder].append(partition)
    found += [
        warning(
            SHARDS,
            f"{numbered(held)}: {holder}",
            "fine if that is your own worker; otherwise stop it: a new worker waits 30 s for a shard, then gives up",
        )
        for holder, held in holders.items()
    ]
    everywhere = sorted({*shards.read, *shards.locked, *shards.broken})
    stray = [partition for partition in everywhere if partition >= partitions]
    if stray:
        found.append(
            warning(
                SHARDS,
                f"{numbered(stray)}: no such partition, because kafka.partitions is {partitions}",
                "set kafka.partitions to its former value: otherwise no worker finds the users' older memories",
            )
        )
    if not found:
        found.append(ok(SHARDS, f"{len(everywhere)} can be opened" if everywhere else "none yet"))
    return found


def numbered(partitions: list[int]) -> str:
    """Return a text that names the shards, such as `shard 3`, `shards 0, 1, 2` or `shards 0, 1, 2 and 5 more`."""
    shown = ", ".join(map(str, partitions[:3]))
    more = f" and {len(partitions) - 3} more" if len(partitions) > 3 else ""
    return f"shard{'' if len(partitions) == 1 else 's'} {shown}{more}"
