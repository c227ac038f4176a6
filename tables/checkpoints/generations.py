"""One partition's objects in the store: packs as `<p>/packs/<sha256>`, manifests as `<p>/manifests/<generation>`."""

from __future__ import annotations

import hashlib
import logging
from typing import Final

from schemas.errors import DamagedCheckpoint, Fenced, StoreUnavailable
from tables.checkpoints.manifest import Manifest, decoded, encoded
from tables.checkpoints.store import Store, StoredObject

log = logging.getLogger(__name__)

#: Maximum number of generation numbers that are tried for a new manifest, because other workers may take a number
#: first.
_ATTEMPTS: Final = 8


class Generations:
    """The checkpoint generations of one partition in the store. All methods raise `StoreUnavailable`."""

    def __init__(self, store: Store, partition: int) -> None:
        self._store = store
        self.partition = partition
        self.packs_folder = f"{partition}/packs"
        self.manifests_folder = f"{partition}/manifests"

    def numbers(self) -> list[int]:
        """Return the numbers of all generations in the store, newest first, including damaged generations."""
        names = (_last(found.name) for found in self._store.listed(self.manifests_folder))
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def read(self, generation: int) -> Manifest | None:
        """Return the manifest of a generation; None if missing. Raises `DamagedCheckpoint`, `CheckpointMismatch`."""
        content = self._store.read(self._manifest(generation))
        return None if content is None else decoded(content, self.partition, generation)

    def sound(self, generation: int) -> Manifest | None:
        """Return the manifest of a generation; None if it is missing or damaged. Raises `CheckpointMismatch`."""
        try:
            return self.read(generation)
        except DamagedCheckpoint as exc:
            log.warning("%s", exc)
            return None

    def all(self, numbers: list[int]) -> list[Manifest]:
        """Return the manifests of these generations that are not missing or damaged. Raises `CheckpointMismatch`."""
        return [manifest for number in numbers if (manifest := self.sound(number)) is not None]

    def newest(self, numbers: list[int]) -> Manifest | None:
        """Return the first manifest of these generations that is neither missing nor damaged, or None.

        Raises `CheckpointMismatch`.
        """
        return next((manifest for number in numbers if (manifest := self.sound(number)) is not None), None)

    def remove(self, generation: int) -> None:
        self._store.remove(self._manifest(generation))

    def packs(self) -> dict[str, StoredObject]:
        """Return all packs in the store by name, including packs that no manifest names."""
        return {_last(found.name): found for found in self._store.listed(self.packs_folder)}

    def is_sound(self, name: str) -> bool:
        """True if the store has this pack and its content is intact. The name of a pack is its checksum."""
        content = self._store.read(f"{self.packs_folder}/{name}")
        return content is not None and hashlib.sha256(content).hexdigest() == name

    def put_pack(self, name: str, content: bytearray) -> None:
        """Upload a pack. An existing pack with this name is replaced.

        It must be replaced because it is damaged, or so old that an expiry could remove it before the manifest is
        stored.
        """
        if not self._store.create(f"{self.packs_folder}/{name}", content):
            self._store.replace(f"{self.packs_folder}/{name}", content)

    def remove_pack(self, name: str) -> None:
        self._store.remove(f"{self.packs_folder}/{name}")

    def remove_drafts(self, modified_before: float) -> None:
        """Remove partial files that killed writers have left in a `file://` store.

        Only files that were last written before `modified_before` (epoch seconds) are removed.
        """
        for folder in (self.packs_folder, self.manifests_folder):
            self._store.remove_drafts(folder, modified_before)

    def publish(self, manifest: Manifest) -> tuple[Manifest, int]:
        """Store a manifest, and return it with its size in bytes. If its number is taken, use the next free number.

        Raises `Fenced` if a worker with a higher epoch has stored a manifest since the take began.
        """
        for _ in range(_ATTEMPTS):
            content = encoded(manifest)
            if self._store.create(self._manifest(manifest.generation), content):
                break
            if self._store.read(self._manifest(manifest.generation)) == content:
                break  # this process stored it: the response was lost, and the client retried
            require_highest(manifest, self.sound(manifest.generation))
            self.require_packs(manifest)
            manifest = Manifest(manifest.generation + 1, manifest.facts, manifest.packs, manifest.files)
        else:
            reason = f"other workers keep taking checkpoints of partition {self.partition}"
            raise StoreUnavailable(self._store.url, reason)
        self._require_last(manifest)
        return manifest, len(content)

    def require_packs(self, manifest: Manifest) -> None:
        """Raise `StoreUnavailable` if the store lacks packs of the manifest.

        This can happen during a long take, when another worker removes packs.
        """
        there = self.packs()
        if any(pack.name not in there for pack in manifest.packs):
            raise StoreUnavailable(
                self._store.url, "packs were removed while a checkpoint was taken", "take another checkpoint"
            )

    def _require_last(self, manifest: Manifest) -> None:
        """If a newer owner of the partition has stored a later generation, remove this manifest and raise `Fenced`.

        This manifest's number was free because an expiry of the newer owner had removed the generation with this
        number.
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
    """Raise `Fenced` if the epoch of `other` is higher than the epoch of `mine`: the partition has a newer owner."""
    if other is not None and other.facts.epoch > mine.facts.epoch:
        raise Fenced(mine.facts.partition, mine.facts.epoch, other.facts.epoch)


def _last(name: str) -> str:
    return name.rpartition("/")[2]
