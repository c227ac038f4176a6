"""Takes, lists, restores, verifies and expires the checkpoints in one object store.

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

#: An expiry removes a pack that no manifest names if it is older than this, in seconds. A younger one may belong to a
#: take that is not finished.
ORPHANED_AFTER: Final = 3600.0


class Taken(NamedTuple):
    """The result of a take: a new checkpoint.

    `uploaded` is the number of bytes that were sent, of packs and of the manifest. `whole` is the number of bytes of
    all files.
    """

    generation: int
    uploaded: int
    whole: int


class Expired(NamedTuple):
    """The result of an expiry: the numbers of removed generations and removed packs, and the bytes of these packs."""

    generations: int
    packs: int
    bytes: int


class _Last(NamedTuple):
    """A partition's last take by this process: the state of the sealed files, and the packs of the generation.

    If this process has taken no checkpoint, `generation` is 0, and `packs` are the packs of the newest generation in
    the store.
    """

    generation: int
    seen: dict[str, Seen]
    packs: tuple[Pack, ...]


class Checkpoints:
    """The checkpoints in one store. Thread-safe. Methods block, so call them in a thread.

    For each partition, only one take or expiry runs at a time.
    """

    def __init__(
        self,
        url: str,
        *,
        keep: int = 3,
        erase_within: timedelta = timedelta(days=7),
        patience: Patience = PATIENCE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Create a client, without a request. `clock` returns epoch seconds. Raises `StoreUnavailable` on failure."""
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
        """Return the partitions that have objects in the store. Raises `StoreUnavailable`."""
        return sorted(int(name) for name in self._store.folders() if name.isdecimal())

    def numbers(self, partition: int) -> list[int]:
        """Return the numbers of all generations, newest first, including damaged ones. Raises `StoreUnavailable`."""
        return self._of(partition).numbers()

    def read(self, partition: int, generation: int) -> Manifest | None:
        """Return the manifest of a generation; None if it is missing.

        Raises `DamagedCheckpoint`, `CheckpointMismatch`, `StoreUnavailable`.
        """
        return self._of(partition).read(generation)

    def newest(self, partition: int) -> Manifest | None:
        """Return the newest undamaged manifest of a partition, or None.

        Raises `CheckpointMismatch`, `StoreUnavailable`.
        """
        mine = self._of(partition)
        return mine.newest(mine.numbers())

    def generations(self, partition: int) -> list[Manifest]:
        """Return all undamaged manifests of a partition, newest first.

        Raises `CheckpointMismatch`, `StoreUnavailable`.
        """
        mine = self._of(partition)
        return mine.all(mine.numbers())

    def take(self, snapshot: Snapshot, stop: Callable[[], bool] = lambda: False) -> Taken | None:
        """Store a snapshot as a new generation, and check one pack of the previous generation.

        `stop` is called before each block is read, and before the manifest is stored. If it returns True, the take
        ends, and None is returned.

        Raises `Fenced` if a newer owner of the partition has taken a checkpoint, `SnapshotChanged`,
        `CheckpointMismatch`, `StoreUnavailable`. If the take does not complete, the next take uses the uploaded
        packs, or an expiry removes them.
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
                """Upload a pack, unless an earlier, incomplete take has uploaded it. Return the bytes sent."""
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
        """Read one pack of `base` from the store, and remember it if it is damaged. `generation` determines the pack.

        Generations share packs, so a damaged pack affects many of them. The damage must be found while the disk still
        has the blocks, because they can be uploaded again only then.
        """
        chosen = hashlib.sha256(b"%d %d" % (mine.partition, generation)).digest()
        pack = base.packs[int.from_bytes(chosen[:8]) % len(base.packs)]
        if not mine.is_sound(pack.name):
            log.warning("partition %d: pack %s is damaged; its blocks are uploaded again", mine.partition, pack.name)
            self._damaged.add(pack.name)

    def restore(self, manifest: Manifest, folder: Path, progress: Progress = lambda done, whole: None) -> None:
        """Restore all files of a generation, or none, into `folder`, which must be missing or empty.

        `progress` gets the bytes done and the total; an exception from it ends the restore. Raises
        `DamagedCheckpoint`, `DataDirError`, `StoreUnavailable`. After `DamagedCheckpoint`, use the newest generation,
        or the previous one if this one is the newest: an expiry may have removed this one during the restore. The
        next take of this process uploads the damaged blocks again.
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
        """Update a folder from generation `before` to `manifest`. Only the blocks that differ are downloaded.

        `folder` must be exactly as `restore` or `refresh` left it with `before`. Afterwards, it has the files of one
        of the two generations. But if the process is killed or the disk fails while files are changed, the folder is
        gone. Raises the same errors as `restore`.
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
        """Read all blocks of a generation. Return the missing and the changed blocks. Raises `StoreUnavailable`.

        The next take of this process uploads these blocks again.
        """
        damaged = verified(self._store, self._of(manifest.facts.partition).packs_folder, manifest, progress)
        self._damaged |= {damage.pack for damage in damaged}
        return damaged

    def is_damaged(self, manifest: Manifest) -> bool:
        """True if this process has found that a pack of the generation is damaged. Sends no request."""
        return any(pack.name in self._damaged for pack in manifest.packs)

    def overdue(self, partition: int) -> bool:
        """True if a checkpoint must be taken even without changes, because of dead bytes in packs (see `erasing.py`).

        If this process has taken no checkpoint of the partition, the first call sends requests to the store. Raises
        the same errors as `newest`.
        """
        last = self._last.get(partition)
        if last is None:
            newest = self.newest(partition)
            last = self._last[partition] = _Last(0, {}, newest.packs if newest is not None else ())
        return overdue(last.packs, int(self._clock() * 1000), self._erase_within)

    def expire(self, partition: int) -> Expired:
        """Remove generations beyond the newest `keep`, generations that are too old (`erasing.py`), and unused packs.

        A pack is unused if no remaining manifest names it. Call this after each take, and from time to time if no
        checkpoint is taken. Raises `CheckpointMismatch`, `StoreUnavailable`. After an error, the next expiry removes
        the rest.
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
        """Return, by name, the sealed files of `base` that have not changed since this process took that generation.

        The result is empty if another process took it.
        """
        last = self._last.get(partition)
        if base is None or last is None or last.generation != base.generation:
            return {}
        same = {name for name, was in now_seen.items() if last.seen.get(name) == was}
        return {file.name: file for file in base.files if file.name in same}

    def _of(self, partition: int) -> Generations:
        return Generations(self._store, partition)

    def _lock(self, partition: int) -> threading.Lock:
        return self._locks.setdefault(partition, threading.Lock())
