"""One partition's objects in the store: packs, `<p>/packs/<sha256>`, and manifests, `<p>/manifests/<generation>`."""

from __future__ import annotations

import hashlib
import logging
from typing import Final

from schemas.errors import DamagedCheckpoint, Fenced, StoreUnavailable
from tables.checkpoints.manifest import Manifest, decoded, encoded
from tables.checkpoints.store import Store, StoredObject

log = logging.getLogger(__name__)

#: Maximum number of generation numbers that are tried for a new manifest, if other workers take them first.
_ATTEMPTS: Final = 8


class Generations:
    """The generations of one partition. All methods raise `StoreUnavailable`."""

    def __init__(self, store: Store, partition: int) -> None:
        self._store = store
        self.partition = partition
        self.packs_folder = f"{partition}/packs"
        self.manifests_folder = f"{partition}/manifests"

    def numbers(self) -> list[int]:
        """The numbers of all generations in the store, newest first, even damaged ones."""
        names = (_last(found.name) for found in self._store.listed(self.manifests_folder))
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def read(self, generation: int) -> Manifest | None:
        """A manifest, or None if missing. Raises `DamagedCheckpoint`, `CheckpointMismatch`."""
        content = self._store.read(self._manifest(generation))
        return None if content is None else decoded(content, self.partition, generation)

    def sound(self, generation: int) -> Manifest | None:
        """A manifest, or None if it is missing or damaged. Raises `CheckpointMismatch`."""
        try:
            return self.read(generation)
        except DamagedCheckpoint as exc:
            log.warning("%s", exc)
            return None

    def all(self, numbers: list[int]) -> list[Manifest]:
        """All sound manifests of these numbers. Raises `CheckpointMismatch`."""
        return [manifest for number in numbers if (manifest := self.sound(number)) is not None]

    def newest(self, numbers: list[int]) -> Manifest | None:
        """The first sound manifest of these numbers, or None. Raises `CheckpointMismatch`."""
        return next((manifest for number in numbers if (manifest := self.sound(number)) is not None), None)

    def remove(self, generation: int) -> None:
        self._store.remove(self._manifest(generation))

    def packs(self) -> dict[str, StoredObject]:
        """All packs in the store by name, including packs that no manifest names."""
        return {_last(found.name): found for found in self._store.listed(self.packs_folder)}

    def is_sound(self, name: str) -> bool:
        """True if a pack is in the store and intact: its name is its checksum."""
        content = self._store.read(f"{self.packs_folder}/{name}")
        return content is not None and hashlib.sha256(content).hexdigest() == name

    def put_pack(self, name: str, content: bytearray) -> None:
        """Upload a pack. If it exists already, it is replaced.

        The existing pack is damaged, or so old that an expiry could remove it before the manifest is stored.
        """
        if not self._store.create(f"{self.packs_folder}/{name}", content):
            self._store.replace(f"{self.packs_folder}/{name}", content)

    def remove_pack(self, name: str) -> None:
        self._store.remove(f"{self.packs_folder}/{name}")

    def remove_drafts(self, modified_before: float) -> None:
        """Remove files that killed writers have left in a `file://` store."""
        for folder in (self.packs_folder, self.manifests_folder):
            self._store.remove_drafts(folder, modified_before)

    def publish(self, manifest: Manifest) -> tuple[Manifest, int]:
        """Store a manifest, with a higher number if its own is taken. Return the stored manifest and its bytes.

        Raises `Fenced` if a worker with a higher epoch has stored a manifest since the take began.
        """
        for _ in range(_ATTEMPTS):
            content = encoded(manifest)
            if self._store.create(self._manifest(manifest.generation), content):
                break
            if self._store.read(self._manifest(manifest.generation)) == content:
                break  # it is ours: a response was lost, and the client retried
            require_highest(manifest, self.sound(manifest.generation))
            self.require_packs(manifest)
            manifest = Manifest(manifest.generation + 1, manifest.facts, manifest.packs, manifest.files)
        else:
            reason = f"other workers keep taking checkpoints of partition {self.partition}"
            raise StoreUnavailable(self._store.url, reason)
        self._require_last(manifest)
        return manifest, len(content)

    def require_packs(self, manifest: Manifest) -> None:
        """Raise `StoreUnavailable` if packs are missing: another worker may remove some during a long take."""
        there = self.packs()
        if any(pack.name not in there for pack in manifest.packs):
            raise StoreUnavailable(
                self._store.url, "packs were removed while a checkpoint was taken", "take another checkpoint"
            )

    def _require_last(self, manifest: Manifest) -> None:
        """If a newer owner has stored a later generation, remove this manifest and raise `Fenced`.

        In that case, this manifest has taken a number that an expiry of the newer owner had freed.
        """
        numbers = self.numbers()
        if not numbers or numbers[0] <= manifest.generation:
            return
        try:
            require_highest(manifest, self.newest(numbers))
        except Fenced:
            self.remove(manifest.generation)
            raise

    def _manifest(self, generation: int) -> str:
        return f"{self.manifests_folder}/{generation:012d}"


def require_highest(mine: Manifest, other: Manifest | None) -> None:
    """Raise `Fenced` if the other manifest's epoch is higher."""
    if other is not None and other.facts.epoch > mine.facts.epoch:
        raise Fenced(mine.facts.partition, mine.facts.epoch, other.facts.epoch)


def _last(name: str) -> str:
    return name.rpartition("/")[2]
