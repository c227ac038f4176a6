"""Warm copies: other workers' partitions on this worker's disk, each restored from the newest checkpoint.

The files of a copy are in `<partition>/files`, and `<partition>/manifest-<generation>` describes them. While the
files are updated to a newer generation, there is no manifest. If a worker is killed during an update, the copy is not
valid, and the worker later fetches a complete one. A copy is renamed before it is removed, so that a partly removed
copy is never used.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from schemas.errors import CheckpointMismatch, DamagedCheckpoint
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.manifest import Manifest, decoded, encoded
from tables.checkpoints.replacing import replace_shard
from tables.checkpoints.restoring import Progress
from tables.paths import synced, write_whole

FILES: Final = "files"
MANIFEST: Final = "manifest-"
_NEXT, _GONE = ".next", ".gone"


class WarmCopy(NamedTuple):
    """A checkpoint generation on this worker's disk. Its files are below `folder / "files"`."""

    manifest: Manifest
    folder: Path

    @property
    def files(self) -> Path:
        return self.folder / FILES


class WarmCopies:
    """The warm copies below `folder`. All methods block. For one partition, call only one method at a time."""

    def __init__(self, folder: Path, store: Checkpoints) -> None:
        self._folder, self._store = folder, store

    def clean(self) -> None:
        """Remove the partial copies that a killed worker left."""
        for suffix in (_NEXT, _GONE):
            for left in self._folder.glob(f"*{suffix}"):
                shutil.rmtree(left, ignore_errors=True)

    def all(self) -> dict[int, WarmCopy]:
        """Return all complete warm copies by partition."""
        if not self._folder.exists():
            return {}
        partitions = [int(one.name) for one in self._folder.iterdir() if one.name.isdecimal()]
        found = ((partition, self._of(partition)) for partition in sorted(partitions))
        return {partition: copy for partition, copy in found if copy is not None}

    def refresh(self, partition: int, former: WarmCopy | None, progress: Progress) -> WarmCopy | None:
        """Update the copy of a partition to the newest generation, or fetch a first copy. Return the copy.

        `former` is the present copy, or None. It is returned if the store has no newer generation. Raises the errors
        of `Checkpoints.refresh` and of `progress`, and OSError. After an error, `former` can still be used if its
        files exist.
        """
        newest = self._store.newest(partition)
        if newest is None or (former is not None and newest.generation <= former.manifest.generation):
            return former
        if former is None:
            return self._fetched(newest, progress)
        named = former.folder / f"{MANIFEST}{former.manifest.generation}"
        named.unlink()
        try:
            self._store.refresh(former.files, former.manifest, newest, progress)
        except BaseException:
            if former.files.exists():
                write_whole(named, encoded(former.manifest))
            raise
        write_whole(former.folder / f"{MANIFEST}{newest.generation}", encoded(newest))
        return WarmCopy(newest, former.folder)

    def _fetched(self, newest: Manifest, progress: Progress) -> WarmCopy:
        partition = newest.facts.partition
        draft, place = self._folder / f"{partition}{_NEXT}", self._folder / str(partition)
        shutil.rmtree(draft, ignore_errors=True)
        try:
            self._store.restore(newest, draft / FILES, progress)
            write_whole(draft / f"{MANIFEST}{newest.generation}", encoded(newest))
            self.drop(partition)
            draft.rename(place)
            synced(self._folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return WarmCopy(newest, place)

    def drop(self, partition: int) -> None:
        """Remove the copy of a partition, if there is one."""
        place, gone = self._folder / str(partition), self._gone(partition)
        shutil.rmtree(gone, ignore_errors=True)
        if place.exists():
            place.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _gone(self, partition: int) -> Path:
        return self._folder / f"{partition}{_GONE}"

    def move(
        self, copy: WarmCopy, part: str, place: Path, *, position: int | None, keep_damaged: bool = False
    ) -> None:
        """Move one folder of a copy, such as "shard", to `place`, and drop the rest of the copy.

        `position` and `keep_damaged` are those of `replace_shard`. If the worker is killed during the move, it keeps
        either the old shard or the new one, and there is no copy any more: a copy without this folder must not be
        refreshed. Raises the errors of `replace_shard`. The copy is then not moved.
        """
        partition = copy.manifest.facts.partition
        gone = self._gone(partition)
        shutil.rmtree(gone, ignore_errors=True)
        copy.folder.rename(gone)
        try:
            replace_shard(partition, gone / FILES / part, place, position=position, keep_damaged=keep_damaged)
        except BaseException:
            gone.rename(copy.folder)
            raise
        shutil.rmtree(gone, ignore_errors=True)

    def _of(self, partition: int) -> WarmCopy | None:
        folder = self._folder / str(partition)
        for path in folder.glob(f"{MANIFEST}*") if (folder / FILES).exists() else ():
            with suppress(OSError, ValueError, DamagedCheckpoint, CheckpointMismatch):
                generation = int(path.name.removeprefix(MANIFEST))
                return WarmCopy(decoded(path.read_bytes(), partition, generation), folder)
        return None
