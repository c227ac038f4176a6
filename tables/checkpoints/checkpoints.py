"""The checkpoints of one store: taken, listed, restored, verified and expired.

    checkpoints = Checkpoints("s3://bucket/prefix", keep=3, erase_within=timedelta(days=7))
    checkpoints.take(snapshot)                        # a new generation of the snapshot's partition
    manifest = checkpoints.newest(partition)
    checkpoints.restore(manifest, folder)             # folder/shard/…, folder/windows/…

Below the URL, each partition has `<p>/packs/<sha256>`, objects of blocks, and `<p>/manifests/<generation>`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from schemas.errors import DamagedCheckpoint, Fenced, StoreUnavailable
from tables.checkpoints.manifest import Manifest, decoded, encoded
from tables.checkpoints.restoring import Damage, Progress, restored, verified
from tables.checkpoints.snapshot import Snapshot
from tables.checkpoints.store import PATIENCE, Patience, Store
from tables.checkpoints.taking import Packing, Seen, Stopped, packed, seen, with_used_packs_only

log = logging.getLogger(__name__)

#: A take that finds another one's generation in its place tries the next so often.
_ATTEMPTS: Final = 8
#: A pack that no manifest names belongs to a take that is under way, unless it is as old as this, in seconds.
ORPHANED_AFTER: Final = 3600.0


class Taken(NamedTuple):
    """A checkpoint that was taken: `uploaded` bytes of packs and manifest travelled, of `whole` in its files."""

    generation: int
    uploaded: int
    whole: int


class Checkpoints:
    """Thread-safe and blocking: call it in a thread. One take or expiry of a partition goes on at a time."""

    def __init__(
        self,
        url: str,
        *,
        keep: int = 3,
        erase_within: timedelta = timedelta(days=7),
        patience: Patience = PATIENCE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = Store(url, patience)
        self._keep = keep
        self._erase_within = erase_within
        self._clock = clock
        self._locks: dict[int, threading.Lock] = {}
        self._seen: dict[int, tuple[int, dict[str, Seen]]] = {}
        self._damaged: set[str] = set()

    @property
    def url(self) -> str:
        """Without what would be secret in it."""
        return self._store.url

    def partitions(self) -> list[int]:
        """Those of which there is anything. Raises `StoreUnavailable`."""
        return sorted(int(name) for name in self._store.folders() if name.isdecimal())

    def numbers(self, partition: int) -> list[int]:
        """The generations that there are, the newest first; damaged ones too. Raises `StoreUnavailable`."""
        names = (found.name.rpartition("/")[2] for found in self._store.listed(_manifests(partition)))
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def read(self, partition: int, generation: int) -> Manifest | None:
        """None where it is not there. Raises `DamagedCheckpoint`, `CheckpointMismatch`, `StoreUnavailable`."""
        content = self._store.read(_manifest(partition, generation))
        return None if content is None else decoded(content, partition, generation)

    def newest(self, partition: int) -> Manifest | None:
        """The newest with a sound manifest, None without any. Raises `CheckpointMismatch`, `StoreUnavailable`."""
        return self._newest(partition, self.numbers(partition))

    def generations(self, partition: int) -> list[Manifest]:
        """All whose manifests are sound, the newest first. Raises `CheckpointMismatch`, `StoreUnavailable`."""
        found = (self._sound(partition, generation) for generation in self.numbers(partition))
        return [manifest for manifest in found if manifest is not None]

    def take(self, snapshot: Snapshot, stop: Callable[[], bool] = lambda: False) -> Taken | None:
        """Keep a snapshot as a new generation. None where `stop` said so; it is asked before each block is read.

        Raises `Fenced` where a newer owner of the partition has taken one, `SnapshotChanged`, `CheckpointMismatch`,
        `StoreUnavailable`. What it has put by then is used by the next take, or removed by an expiry.
        """
        partition = snapshot.facts.partition
        with self._lock(partition):
            numbers = self.numbers(partition)
            base = self._newest(partition, numbers)
            _require_ours(snapshot, base)
            usable = self._usable(partition, base)
            now_seen = {file.name: was for file in snapshot.files if (was := seen(file)) is not None}
            at, before = self._seen.get(partition, (0, {}))
            unread = {
                file.name: file
                for file in (base.files if base is not None and base.generation == at else ())
                if file.name in now_seen and now_seen[file.name] == before.get(file.name)
            }
            with Packing(base, usable, lambda name, content: self._put(partition, name, content)) as packing:
                try:
                    files = packed(snapshot, packing, unread, stop)
                except Stopped:
                    return None
                packs = packing.finish()
                if stop():
                    return None
            manifest = with_used_packs_only(numbers[0] + 1 if numbers else 1, snapshot, files, packs)
            manifest, sent = self._publish(snapshot, manifest)
            self._seen[partition] = manifest.generation, now_seen
            return Taken(manifest.generation, packing.uploaded + sent, manifest.whole)

    def restore(self, manifest: Manifest, folder: Path, progress: Progress = lambda done, whole: None) -> None:
        """Put a generation's files into `folder`, which must not be there or be empty: all of them, or no folder.

        `progress` gets the bytes that are done, and those of all; what it raises ends the restore. Raises
        `DamagedCheckpoint` (take the generation before), `DataDirError`, `StoreUnavailable`.
        """
        try:
            restored(self._store, _packs(manifest.facts.partition), manifest, folder, progress)
        except DamagedCheckpoint as exc:
            if exc.pack is not None:
                self._damaged.add(exc.pack)
            raise

    def verify(self, manifest: Manifest, progress: Progress = lambda done, whole: None) -> list[Damage]:
        """Read every byte of a generation: what is missing, or not what it was. Raises `StoreUnavailable`."""
        damaged = verified(self._store, _packs(manifest.facts.partition), manifest, progress)
        self._damaged |= {damage.pack for damage in damaged}
        return damaged

    def _newest(self, partition: int, numbers: list[int]) -> Manifest | None:
        found = (self._sound(partition, generation) for generation in numbers)
        return next((manifest for manifest in found if manifest is not None), None)

    def _sound(self, partition: int, generation: int) -> Manifest | None:
        try:
            return self.read(partition, generation)
        except DamagedCheckpoint as exc:
            log.warning("%s", exc)
            return None

    def _usable(self, partition: int, base: Manifest | None) -> set[str]:
        """The packs of a manifest that are on the store as they were, as far as a list of them says."""
        if base is None:
            return set()
        there = {found.name.rpartition("/")[2]: found.length for found in self._store.listed(_packs(partition))}
        return {pack.name for pack in base.packs if there.get(pack.name) == pack.length} - self._damaged

    def _put(self, partition: int, name: str, content: bytearray) -> None:
        """A pack that is there was left by a take that ended early, or is damaged: put again, it is new and sound."""
        if not self._store.create(f"{_packs(partition)}/{name}", content):
            self._store.replace(f"{_packs(partition)}/{name}", content)
        self._damaged.discard(name)

    def _publish(self, snapshot: Snapshot, manifest: Manifest) -> tuple[Manifest, int]:
        """Put the manifest where no other is. Whoever comes second and is of the lower epoch is fenced."""
        partition = manifest.facts.partition
        for _ in range(_ATTEMPTS):
            content = encoded(manifest)
            if self._store.create(_manifest(partition, manifest.generation), content):
                break
            if self._store.read(_manifest(partition, manifest.generation)) == content:
                break  # an answer was lost, and the client asked again
            _require_ours(snapshot, self._sound(partition, manifest.generation))
            manifest = Manifest(manifest.generation + 1, manifest.facts, manifest.packs, manifest.files)
        else:
            raise StoreUnavailable(self.url, f"others take checkpoints of partition {partition} all the time")
        numbers = self.numbers(partition)
        if numbers and numbers[0] > manifest.generation:
            _require_ours(snapshot, self._newest(partition, numbers))
        return manifest, len(content)

    def _lock(self, partition: int) -> threading.Lock:
        return self._locks.setdefault(partition, threading.Lock())


def _require_ours(snapshot: Snapshot, newest: Manifest | None) -> None:
    epoch = snapshot.facts.epoch
    if newest is not None and newest.facts.epoch > epoch:
        raise Fenced(snapshot.facts.partition, epoch, newest.facts.epoch)


def _packs(partition: int) -> str:
    return f"{partition}/packs"


def _manifests(partition: int) -> str:
    return f"{partition}/manifests"


def _manifest(partition: int, generation: int) -> str:
    return f"{_manifests(partition)}/{generation:012d}"
