"""Takes a checkpoint: finds the blocks that must be uploaded, and uploads them in larger objects, the packs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, NamedTuple

from schemas.errors import SnapshotChanged
from tables.checkpoints.manifest import Block, File, Manifest, Pack, checksum_of
from tables.checkpoints.snapshot import Snapshot, SnapshotFile, spans

#: A pack is uploaded when it has at least `PACK_BYTES`. At most `UPLOADS` packs are uploaded at the same time.
PACK_BYTES: Final = 16 * 1024 * 1024
UPLOADS: Final = 2


class Seen(NamedTuple):
    """A sealed file's length and modification time (ns) when it was last read."""

    length: int
    modified: int


class Stopped(Exception):
    """The caller has stopped the take."""


class Packing:
    """The packs of a new generation: packs reused from the previous generation, and new packs."""

    def __init__(
        self, base: Manifest | None, usable: Mapping[str, int], put: Callable[[str, bytearray], int]
    ) -> None:
        """`usable` maps the names of packs in the store whose blocks may be reused to the lengths of these packs.

        `put` uploads a pack and returns the number of bytes that it sent.
        """
        self._put = put
        self._packs: list[Pack] = list(base.packs) if base else []
        self._known: dict[str, Block] = {
            block.sha256: block
            for file in (base.files if base else ())
            for block in file.blocks
            if usable.get(self._packs[block.pack].name) == self._packs[block.pack].length
        }
        self._new: dict[str, Block] = {}
        self._filling = bytearray()
        self._pending: list[Future[int]] = []
        self._uploader = ThreadPoolExecutor(UPLOADS, "checkpoint-upload")
        self.uploaded = 0

    def __enter__(self) -> Packing:
        return self

    def __exit__(self, *_: object) -> None:
        self._uploader.shutdown(wait=True, cancel_futures=True)

    def kept(self, sha256: str) -> Block | None:
        """Return the block with this checksum if a pack already has it, else None."""
        return self._known.get(sha256) or self._new.get(sha256)

    def add(self, sha256: str, content: memoryview) -> Block:
        """Add a block to a new pack, unless a pack already has it. Return the block with its place in the pack."""
        if (block := self.kept(sha256)) is not None:
            return block
        block = Block(sha256, len(self._packs), len(self._filling), len(content))
        self._filling += content
        self._new[sha256] = block
        if len(self._filling) >= PACK_BYTES:
            self._send()
        return block

    def finish(self) -> list[Pack]:
        """Wait until all packs are in the store, and return them. Raises the errors of the uploads."""
        if self._filling:
            self._send()
        self._settle(0)
        return self._packs

    def _send(self) -> None:
        self._settle(UPLOADS - 1)
        content, self._filling = self._filling, bytearray()
        name = hashlib.sha256(content).hexdigest()
        self._packs.append(Pack(name, len(content)))
        self._pending.append(self._uploader.submit(self._put, name, content))

    def _settle(self, most: int) -> None:
        while len(self._pending) > most:
            self.uploaded += self._pending.pop(0).result()


def packed(snapshot: Snapshot, packing: Packing, unread: Mapping[str, File], stop: Callable[[], bool]) -> list[File]:
    """Pack the files of a snapshot, block by block. Return the files for the manifest.

    Files in `unread` have not changed since the previous generation. Of these files, only the blocks that no usable
    pack has are read. Raises `SnapshotChanged`, `Stopped`, and the errors of the uploads.
    """
    return [_packed_file(snapshot, file, packing, unread.get(file.name), stop) for file in snapshot.files]


def _packed_file(
    snapshot: Snapshot, file: SnapshotFile, packing: Packing, before: File | None, stop: Callable[[], bool]
) -> File:
    blocks: list[Block] = []
    expected = iter(before.blocks if before else ())
    try:
        source = file.path.open("rb", buffering=0)
    except FileNotFoundError as exc:
        raise SnapshotChanged(snapshot.facts.partition, file.name) from exc
    with source:
        buffer = bytearray()
        for offset, length in spans(file.name, file.length):
            was = next(expected, None)
            if was is not None and (kept := packing.kept(was.sha256)) is not None:
                blocks.append(kept)
                continue
            if stop():
                raise Stopped
            if len(buffer) != length:
                buffer = bytearray(length)
            if os.preadv(source.fileno(), [buffer], offset) != length:
                raise SnapshotChanged(snapshot.facts.partition, file.name)
            blocks.append(packing.add(hashlib.sha256(buffer).hexdigest(), memoryview(buffer)))
    return File(file.name, file.length, checksum_of(blocks), tuple(blocks))


def published(draft: Manifest, files: Iterable[File], packs: list[Pack]) -> Manifest:
    """Return the manifest of these files. It lists only packs that they use, each with its new `dead_since`."""
    files = tuple(files)
    live: dict[int, dict[int, int]] = {}
    for file in files:
        for block in file.blocks:
            live.setdefault(block.pack, {})[block.offset] = block.length
    numbers = {old: new for new, old in enumerate(sorted(live))}
    used = []
    for old in numbers:
        dead = sum(live[old].values()) < packs[old].length
        since = (packs[old].dead_since or draft.facts.at) if dead else 0
        used.append(Pack(packs[old].name, packs[old].length, since))
    renumbered = (
        File(
            file.name,
            file.length,
            file.sha256,
            tuple(Block(block.sha256, numbers[block.pack], block.offset, block.length) for block in file.blocks),
        )
        for file in files
    )
    return Manifest(draft.generation, draft.facts, tuple(used), tuple(renumbered))


def seen(file: SnapshotFile) -> Seen | None:
    """Return the length and modification time of a sealed file; None if it is not sealed or cannot be read."""
    if not file.sealed:
        return None
    with suppress(OSError):
        return Seen(file.length, file.path.stat().st_mtime_ns)
    return None
