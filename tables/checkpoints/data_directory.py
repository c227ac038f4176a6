"""Restores a data directory from checkpoints. Each partition gets its newest generation up to a given time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from schemas.errors import CheckpointMismatch, DamagedCheckpoint, DataDirError, NoCheckpoint
from schemas.times import iso
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.manifest import Manifest
from tables.partition_record import record_partitions
from tables.paths import synced
from tables.privacy import make_private

#: The folder in the data directory with the restored files, until the restore is complete.
DRAFT: Final = "restoring"
#: Maps the first part of a file's name in a checkpoint, such as `shard` in `shard/catalog.duckdb`, to the folder of
#: the data directory for these files.
FOLDERS: Final = {"shard": "shards", "windows": "windows"}

#: A callback for progress. It gets the generation, the bytes done, and the total bytes.
Telling = Callable[[Manifest, int, int], None]


class Choice(NamedTuple):
    """The generations that can be restored, by partition, newest first.

    `partitions` is the number of all partitions. `without` lists the partitions that have no checkpoint.
    """

    partitions: int
    generations: Mapping[int, Sequence[Manifest]]
    without: Sequence[int]


class Restored(NamedTuple):
    """The result of a restore: each partition's restored generation, and the damaged generations that it skipped."""

    taken: Sequence[Manifest]
    damaged: Sequence[DamagedCheckpoint]


def choice(checkpoints: Checkpoints, at: int | None = None, wanted: Collection[int] = ()) -> Choice:
    """Return the generations that were taken up to `at` (epoch ms); if `at` is None, return all generations.

    The result has the partitions in `wanted`, or all partitions if `wanted` is empty. The newest of these generations
    determines the number of partitions. Raises `NoCheckpoint` if a partition has only newer generations, or if a
    wanted partition or the store has none; `CheckpointMismatch` if a partition's newest generation was taken with
    another number of partitions; `StoreUnavailable`.
    """
    there = {partition: checkpoints.generations(partition) for partition in checkpoints.partitions()}
    kept = {partition: found for partition, found in there.items() if found}
    if not kept:
        raise NoCheckpoint(f"there is no checkpoint at {checkpoints.url}: check checkpoints.url")
    fitting = {
        partition: [one for one in found if at is None or one.facts.at <= at] for partition, found in kept.items()
    }
    newest = max((found[0] for found in fitting.values() if found), key=lambda one: one.facts.at, default=None)
    if newest is None:
        oldest = min(one.facts.at for found in kept.values() for one in found)
        raise NoCheckpoint(f"the oldest checkpoint at {checkpoints.url} is of {iso(oldest)}: ask for a later time")
    partitions = newest.facts.partitions
    asked = sorted(wanted) or range(partitions)
    for partition in asked:
        if partition >= partitions or (partition in wanted and partition not in kept):
            raise NoCheckpoint(f"there is no checkpoint of partition {partition} at {checkpoints.url}")
        if partition in kept and not fitting[partition]:
            oldest = kept[partition][-1].facts.at
            raise NoCheckpoint(
                f"the oldest checkpoint of partition {partition} is of {iso(oldest)}: ask for a later time; "
                "checkpoints.keep sets how many are kept"
            )
        if partition in kept and (other := fitting[partition][0].facts.partitions) != partitions:
            raise CheckpointMismatch(
                partition,
                f"its users are distributed over {other} partitions, and those of partition "
                f"{newest.facts.partition} over {partitions}: ask for another time",
            )
    return Choice(
        partitions,
        {partition: fitting[partition] for partition in asked if partition in kept},
        [partition for partition in asked if partition not in kept],
    )


def restore_directory(
    checkpoints: Checkpoints, chosen: Choice, data: Path, tell: Telling = lambda one, done, whole: None
) -> Restored:
    """Restore the chosen generations into a data directory: all partitions or none.

    If a generation is damaged, the previous one is used. Raises `DataDirError` if the directory is not empty,
    `DamagedCheckpoint` if a partition has no intact generation, `StoreUnavailable`, and the errors of `tell`.
    """
    draft = data / DRAFT
    make_private(data)
    if any(path != draft for path in data.iterdir()):
        raise DataDirError(data, "it is not empty: a checkpoint is restored into an empty folder")
    damaged = list[DamagedCheckpoint]()
    try:
        if draft.exists():
            shutil.rmtree(draft)
        draft.mkdir()
        try:
            taken = [
                _restored(checkpoints, generations, draft, damaged, tell)
                for generations in chosen.generations.values()
            ]
            for folder in FOLDERS.values():
                if (draft / folder).exists():
                    (draft / folder).rename(data / folder)
        finally:
            shutil.rmtree(draft)
        synced(data)
    except OSError as exc:
        raise DataDirError(data, exc.strerror or type(exc).__name__) from exc
    record_partitions(data, chosen.partitions)
    return Restored(taken, damaged)


def _restored(
    checkpoints: Checkpoints,
    generations: Sequence[Manifest],
    draft: Path,
    damaged: list[DamagedCheckpoint],
    tell: Telling,
) -> Manifest:
    """Restore the newest intact generation of a partition. Return its manifest.

    Errors of damaged generations are added to `damaged`. If all generations are damaged, raise the last error.
    """
    for manifest in generations:
        folder = draft / str(manifest.facts.partition)
        try:
            checkpoints.restore(manifest, folder, partial(tell, manifest))
        except DamagedCheckpoint as exc:
            damaged.append(exc)
            continue
        for part, name in FOLDERS.items():
            if (folder / part).exists():
                (draft / name).mkdir(exist_ok=True)
                (folder / part).rename(draft / name / folder.name)
                synced(draft / name)
        folder.rmdir()
        return manifest
    raise damaged[-1]
