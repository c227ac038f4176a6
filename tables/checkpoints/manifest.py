"""A manifest describes one checkpoint: the blocks of each file, and the pack and offset of each block.

In the store it is a line with the format version and the checksum of the rest, then compressed JSON. It is written
once and never changed.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from typing import Final

import msgspec

from schemas.errors import CheckpointMismatch, DamagedCheckpoint
from tables.checkpoints.snapshot import FORMAT, Facts

MAGIC: Final = b"siltstone-checkpoint"
#: Maximum length of the first line, in bytes.
HEADER_BYTES: Final = 128


class Block(msgspec.Struct, frozen=True, array_like=True):
    """A block of a file, stored as `length` bytes at `offset` in `Manifest.packs[pack]`. `sha256` is hexadecimal."""

    sha256: str
    pack: int
    offset: int
    length: int


class Pack(msgspec.Struct, frozen=True):
    """An object in the store that holds blocks. Its name is the SHA-256 of its content.

    Bytes of a pack that belong to no file any more are dead. `dead_since` is the time (`Facts.at`) of the first
    generation that has dead bytes in this pack; 0 if the pack has none.
    """

    name: str
    length: int
    dead_since: int = 0


class File(msgspec.Struct, frozen=True):
    """A file of a checkpoint: its blocks in order, and a checksum (`sha256`) of the checksums of these blocks."""

    name: str
    length: int
    sha256: str
    blocks: tuple[Block, ...]


class Manifest(msgspec.Struct, frozen=True):
    """The manifest of one generation of one partition."""

    generation: int
    facts: Facts
    packs: tuple[Pack, ...]
    files: tuple[File, ...]

    @property
    def whole(self) -> int:
        """The total bytes of the generation's files."""
        return sum(file.length for file in self.files)


_decode: Final = msgspec.json.Decoder(Manifest).decode


def checksum_of(blocks: Iterable[Block]) -> str:
    return hashlib.sha256("".join(block.sha256 for block in blocks).encode("ascii")).hexdigest()


def encoded(manifest: Manifest) -> bytes:
    body = zlib.compress(msgspec.json.encode(manifest), 1)
    return b"%s %d %s\n%s" % (MAGIC, manifest.facts.format, hashlib.sha256(body).hexdigest().encode(), body)


def decoded(content: bytes, partition: int, generation: int) -> Manifest:
    """Decode and check a manifest. Raises `DamagedCheckpoint`, or `CheckpointMismatch` if its format is newer."""

    def damaged(reason: str) -> DamagedCheckpoint:
        return DamagedCheckpoint(partition, generation, f"its manifest {reason}")

    line, newline, body = content.partition(b"\n")
    parts = line.split(b" ")
    if not newline or len(line) > HEADER_BYTES or len(parts) != 3 or parts[0] != MAGIC:
        raise damaged("has no valid header")
    if hashlib.sha256(body).hexdigest().encode() != parts[2]:
        raise damaged("does not match its checksum")
    if not parts[1].isdigit():
        raise damaged("has no valid header")
    if int(parts[1]) > FORMAT:
        raise CheckpointMismatch(
            partition, f"a newer version wrote it (format {int(parts[1])}, this one reads up to {FORMAT})"
        )
    try:
        manifest = _decode(zlib.decompress(body))
    except (zlib.error, msgspec.MsgspecError) as exc:
        raise damaged("cannot be read") from exc
    mine = (manifest.generation, manifest.facts.partition, manifest.facts.format)
    if mine != (generation, partition, int(parts[1])):
        raise damaged("belongs to another checkpoint")
    if not all(_sound(file, manifest.packs) for file in manifest.files):
        raise damaged("lists impossible files or blocks")
    return manifest


def _sound(file: File, packs: tuple[Pack, ...]) -> bool:
    """True if a file can be restored as the manifest describes it.

    The file's name must not lead out of the folder, its blocks must lie in their packs, and its length and checksum
    must match its blocks.
    """
    parts = file.name.split("/")
    return (
        all(part not in ("", ".", "..") and "\0" not in part for part in parts)
        and all(0 <= block.pack < len(packs) and block.offset >= 0 and block.length > 0 for block in file.blocks)
        and all(block.offset + block.length <= packs[block.pack].length for block in file.blocks)
        and sum(block.length for block in file.blocks) == file.length
        and checksum_of(file.blocks) == file.sha256
    )
