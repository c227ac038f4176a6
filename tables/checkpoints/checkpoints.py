"""The checkpoints of one store: taken, listed, restored, verified and expired.

checkpoints = Checkpoints("s3://bucket/prefix", keep=3, erase_within=timedelta(days=7))
checkpoints.take(snapshot)                        # a new generation of the snapshot's partition
checkpoints.expire(partition)
manifest = checkpoints.newest(partition)
checkpoints.restore(manifest, folder)             # folder/shard/…, folder/windows/…
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from schemas.errors import DamagedCheckpoint
from tables.checkpoints.erasing import leaving, overdue, superseded, third
from tables.checkpoints.generations import Generations, require_highest
from tables.checkpoints.manifest import File, Manifest, Pack
from tables.checkpoints.refreshing import refreshed
from tables.checkpoints.restoring import Damage, Progress, restored, verified
from tables.checkpoints.snapshot import Snapshot
from tables.checkpoints.store import PATIENCE, Patience, Store
from tables.checkpoints.taking import Packing, Seen, Stopped, packed, published, seen

log = logging.getLogger(__name__)

#: A pack that no manifest names belongs to a take in progress, unless it is older than this, in seconds.
ORPHANED_AFTER: Final = 3600.0


class Taken(NamedTuple):
    """A new checkpoint: `uploaded` bytes of packs and manifest were sent; its files have `whole` bytes."""

    generation: int
    uploaded: int
    whole: int


class Expired(NamedTuple):
    """The number of generations and packs that an expiry removed, and the bytes of the packs."""

    generations: int
    packs: int
    bytes: int


class _Last(NamedTuple):
    """What this process remembers of a partition's last take: the sealed files, and the generation's packs."""

    generation: int
    seen: dict[str, Seen]
    packs: tuple[Pack, ...]


class Checkpoints:
    """Thread-safe and blocking: call it in a thread. A partition has one take or expiry at a time."""

    def __init__(
        self,
        url: str,
        *,
        keep: int = 3,
        erase_within: timedelta = timedelta(days=7),
        patience: Patience = PATIENCE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Sends no request. `clock`: seconds since 1970. Raises `StoreUnavailable` if no client can be made."""
        self._store = Store(url, patience)
        self._keep = keep
        self._erase_within = erase_within
        self._orphaned_after = min(ORPHANED_AFTER, third(erase_within) / 1000)
        self._clock = clock
        self._locks: dict[int, threading.Lock] = {}
        self._last: dict[int, _Last] = {}
        self._damaged: set[str] = set()

    @property
    def url(self) -> str:
        """The store's URL without secrets."""
        return self._store.url

    def partitions(self) -> list[int]:
        """The partitions that have objects in the store. Raises `StoreUnavailable`."""
        return sorted(int(name) for name in self._store.folders() if name.isdecimal())

    def numbers(self, partition: int) -> list[int]:
        """The generations in the store, newest first; damaged ones too. Raises `StoreUnavailable`."""
        return self._of(partition).numbers()

    def read(self, partition: int, generation: int) -> Manifest | None:
        """A manifest, or None if missing. Raises `DamagedCheckpoint`, `CheckpointMismatch`, `StoreUnavailable`."""
        return self._of(partition).read(generation)

    def newest(self, partition: int) -> Manifest | None:
        """The newest sound manifest, or None. Raises `CheckpointMismatch`, `StoreUnavailable`."""
        mine = self._of(partition)
        return mine.newest(mine.numbers())

    def generations(self, partition: int) -> list[Manifest]:
        """All sound manifests, newest first. Raises `CheckpointMismatch`, `StoreUnavailable`."""
        mine = self._of(partition)
        return mine.all(mine.numbers())

    def take(self, snapshot: Snapshot, stop: Callable[[], bool] = lambda: False) -> Taken | None:
        """Store a snapshot as a new generation, and check one pack of the previous generation.

        Returns None if `stop` returns True; it is called before each block is read, and before the manifest is put.

        Raises `Fenced` if a newer owner of the partition has taken a checkpoint, `SnapshotChanged`,
        `CheckpointMismatch`, `StoreUnavailable`. The next take uses the packs put by then, or an expiry removes them.
        """
        partition = snapshot.facts.partition
        with self._lock(partition):
            mine, began = self._of(partition), self._clock()
            numbers = mine.numbers()
            base = mine.newest(numbers)
            draft = Manifest(numbers[0] + 1 if numbers else 1, snapshot.facts, (), ())
            require_highest(draft, base)
            there = mine.packs()
            if base is not None and base.packs:
                self._reread(mine, base, draft.generation)
            left = self._damaged | (leaving(base, snapshot.facts.at, self._erase_within) if base else set())

            def put(name: str, content: bytearray) -> int:
                """Upload a pack, unless a take that ended early has uploaded it; return the bytes sent."""
                old = there.get(name)
                young = old is not None and began - old.modified < self._orphaned_after / 2
                if old is not None and young and old.length == len(content) and name not in self._damaged:
                    return 0
                mine.put_pack(name, content)
                self._damaged.discard(name)
                return len(content)

            usable = {name for name, found in there.items() if name not in left}
            now_seen = {file.name: was for file in snapshot.files if (was := seen(file)) is not None}
            try:
                with Packing(base, {name: there[name].length for name in usable}, put) as packing:
                    files = packed(snapshot, packing, self._unread(partition, base, now_seen), stop)
                    packs = packing.finish()
                    if stop():
                        return None
            except Stopped:
                return None
            manifest = published(draft, files, packs)
            if self._clock() - began > self._orphaned_after / 2:
                mine.require_packs(manifest)
            manifest, sent = mine.publish(manifest)
            self._last[partition] = _Last(manifest.generation, now_seen, manifest.packs)
            return Taken(manifest.generation, packing.uploaded + sent, manifest.whole)

    def _reread(self, mine: Generations, base: Manifest, generation: int) -> None:
        """Read one pack in the store, chosen by the generation's number, and note it if it is damaged.

        All generations share old packs, so damage to one affects them all. It has to be found while the disk still
        has the blocks, not after the disk is lost.
        """
        chosen = hashlib.sha256(b"%d %d" % (mine.partition, generation)).digest()
        pack = base.packs[int.from_bytes(chosen[:8]) % len(base.packs)]
        if not mine.is_sound(pack.name):
            log.warning("partition %d: pack %s is damaged; its blocks are uploaded again", mine.partition, pack.name)
            self._damaged.add(pack.name)

    def restore(self, manifest: Manifest, folder: Path, progress: Progress = lambda done, whole: None) -> None:
        """Restore a generation's files into `folder`, which must be missing or empty: all files, or no folder.

        `progress` gets the bytes done and the total; an exception from it ends the restore. Raises
        `DamagedCheckpoint` (use the previous generation, or a newer one: this one may have been removed meanwhile),
        `DataDirError`, `StoreUnavailable`. The next take of this process puts the damaged blocks again.
        """
        try:
            restored(self._store, self._of(manifest.facts.partition).packs_folder, manifest, folder, progress)
        except DamagedCheckpoint as exc:
            if exc.pack is not None:
                self._damaged.add(exc.pack)
            raise

    def refresh(
        self, folder: Path, before: Manifest, manifest: Manifest, progress: Progress = lambda done, whole: None
    ) -> None:
        """Update a folder from one generation to another; only the blocks that differ are downloaded.

        `folder` must be as `restore` or `refresh` left it with `before`, its files not opened since. Afterwards it
        holds one of the two generations; it is gone if the process is killed or the disk fails during the change.
        Raises as `restore` does.
        """
        try:
            refreshed(
                self._store, self._of(manifest.facts.partition).packs_folder, before, manifest, folder, progress
            )
        except DamagedCheckpoint as exc:
            if exc.pack is not None:
                self._damaged.add(exc.pack)
            raise

    def verify(self, manifest: Manifest, progress: Progress = lambda done, whole: None) -> list[Damage]:
        """Read every byte of a generation; return the missing or changed blocks. Raises `StoreUnavailable`.

        The next take of this process puts the damaged blocks again.
        """
        damaged = verified(self._store, self._of(manifest.facts.partition).packs_folder, manifest, progress)
        self._damaged |= {damage.pack for damage in damaged}
        return damaged

    def is_damaged(self, manifest: Manifest) -> bool:
        """True if this process has found a pack of the generation damaged. Sends no request."""
        return any(pack.name in self._damaged for pack in manifest.packs)

    def overdue(self, partition: int) -> bool:
        """True if a take is due even without changes: packs have bytes dead for a third of `erase_within`.

        Asks the store if this process has taken no checkpoint of the partition. Raises as `newest` does.
        """
        last = self._last.get(partition)
        if last is None:
            newest = self.newest(partition)
            last = self._last[partition] = _Last(0, {}, newest.packs if newest is not None else ())
        return overdue(last.packs, int(self._clock() * 1000), self._erase_within)

    def expire(self, partition: int) -> Expired:
        """Remove generations beyond `keep`, those that are too old (`erasing.py`), and packs that no manifest names.

        Call it after each take, and now and then without one. Raises `CheckpointMismatch`, `StoreUnavailable`; the
        next expiry continues where it stopped.
        """
        with self._lock(partition):
            mine, now = self._of(partition), self._clock()
            numbers = mine.numbers()
            sound = mine.all(numbers)
            if not sound:
                return Expired(0, 0, 0)
            gone = superseded(sound, self._keep, int(now * 1000), self._erase_within)
            kept = {manifest.generation for manifest in sound} - {manifest.generation for manifest in gone}
            removed = [number for number in sorted(numbers) if number not in kept and number < max(kept)]
            for number in removed:
                mine.remove(number)
            named = {pack.name for manifest in sound if manifest.generation in kept for pack in manifest.packs}
            outlived = {pack.name for manifest in gone for pack in manifest.packs}
            packs = {
                name: found
                for name, found in mine.packs().items()
                if name not in named and (name in outlived or now - found.modified >= self._orphaned_after)
            }
            if mine.numbers()[:1] != numbers[:1]:
                return Expired(len(removed), 0, 0)  # another worker's new manifest may name any of these packs
            for name in packs:
                mine.remove_pack(name)
            mine.remove_drafts(now - self._orphaned_after)
            return Expired(len(removed), len(packs), sum(found.length for found in packs.values()))

    def _unread(self, partition: int, base: Manifest | None, now_seen: dict[str, Seen]) -> dict[str, File]:
        """The sealed files that are unchanged since this process took the newest generation."""
        last = self._last.get(partition)
        if base is None or last is None or last.generation != base.generation:
            return {}
        same = {name for name, was in now_seen.items() if last.seen.get(name) == was}
        return {file.name: file for file in base.files if file.name in same}

    def _of(self, partition: int) -> Generations:
        return Generations(self._store, partition)

    def _lock(self, partition: int) -> threading.Lock:
        return self._locks.setdefault(partition, threading.Lock())
