"""A data directory out of checkpoints: all partitions, each as it was in its newest generation up to a moment."""

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

#: In the directory until everything is there.
DRAFT: Final = "restoring"
#: Where a partition's files lie in the directory, by the first part of their names in a checkpoint.
FOLDERS: Final = {"shard": "shards", "windows": "windows"}

#: Gets the generation, the bytes that are done and those of all.
Telling = Callable[[Manifest, int, int], None]


class Choice(NamedTuple):
    """What there is to restore: the generations of each partition, the newest first; and partitions without any."""

    partitions: int
    generations: Mapping[int, Sequence[Manifest]]
    without: Sequence[int]


class Restored(NamedTuple):
    """The generation of each partition that is in the directory, and what was damaged and left out for it."""

    taken: Sequence[Manifest]
    damaged: Sequence[DamagedCheckpoint]


def choice(checkpoints: Checkpoints, at: int | None = None, wanted: Collection[int] = ()) -> Choice:
    """Generations that are no newer than `at` (epoch ms), of all partitions or those that are wanted.

    The newest generation says how many partitions there are. Raises `NoCheckpoint` where a partition has only newer
    ones, or one that is wanted has none; `CheckpointMismatch` where two are of other numbers of partitions;
    `StoreUnavailable`.
    """
    there = {partition: checkpoints.generations(partition) for partition in checkpoints.partitions()}
    kept = {partition: found for partition, found in there.items() if found}
    if not kept:
        raise NoCheckpoint(f"there is no checkpoint at {checkpoints.url}: look at checkpoints.url")
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
                "checkpoints.keep says how many stay"
            )
        if partition in kept and (other := fitting[partition][0].facts.partitions) != partitions:
            raise CheckpointMismatch(
                partition,
                f"its users are shared out by {other} partitions, and those of partition {newest.facts.partition} by "
                f"{partitions}: ask for another time",
            )
    return Choice(
        partitions,
        {partition: fitting[partition] for partition in asked if partition in kept},
        [partition for partition in asked if partition not in kept],
    )


def restore_directory(
    checkpoints: Checkpoints, chosen: Choice, data: Path, tell: Telling = lambda one, done, whole: None
) -> Restored:
    """Make a data directory of what was chosen; all of it is there at the end, or nothing.

    Of a damaged generation the one before it is taken. Raises `DataDirError` where there is something in it already,
    `DamagedCheckpoint` where no generation of a partition is whole, `StoreUnavailable`, and what `tell` raises.
    """
    draft = data / DRAFT
    make_private(data)
    if any(path != draft for path in data.iterdir()):
        raise DataDirError(data, "there is something in it: a checkpoint is restored into an empty folder")
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
    """The newest of a partition's generations that is whole."""
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
