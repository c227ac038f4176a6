"""A manifest: which blocks the files of one generation consist of, and where in which pack each of them lies.

On the store it is a line with the version and the checksum of what follows, and then JSON, compressed. It is written
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
#: The first line is no longer than this, in bytes.
HEADER_BYTES: Final = 128


class Block(msgspec.Struct, frozen=True, array_like=True):
    """`length` bytes at `offset` of the pack number `pack` of the manifest; `sha256` is theirs, in hexadecimal."""

    sha256: str
    pack: int
    offset: int
    length: int


class Pack(msgspec.Struct, frozen=True):
    """An object that holds blocks. It is named by the SHA-256 of all of it.

    `dead_since` is the moment (`Facts.at`) since which some of its bytes are in no file, 0 where all are in one.
    """

    name: str
    length: int
    dead_since: int = 0


class File(msgspec.Struct, frozen=True):
    """A file of a checkpoint: its blocks, in their order, and the checksum of their checksums."""

    name: str
    length: int
    sha256: str
    blocks: tuple[Block, ...]


class Manifest(msgspec.Struct, frozen=True):
    """One generation of one partition."""

    generation: int
    facts: Facts
    packs: tuple[Pack, ...]
    files: tuple[File, ...]

    @property
    def whole(self) -> int:
        """All bytes of its files."""
        return sum(file.length for file in self.files)


_decode: Final = msgspec.json.Decoder(Manifest).decode


def checksum_of(blocks: Iterable[Block]) -> str:
    return hashlib.sha256("".join(block.sha256 for block in blocks).encode("ascii")).hexdigest()


def encoded(manifest: Manifest) -> bytes:
    body = zlib.compress(msgspec.json.encode(manifest), 1)
    return b"%s %d %s\n%s" % (MAGIC, manifest.facts.format, hashlib.sha256(body).hexdigest().encode(), body)


def decoded(content: bytes, partition: int, generation: int) -> Manifest:
    """Raises `DamagedCheckpoint`, and `CheckpointMismatch` where a newer version wrote it."""

    def damaged(reason: str) -> DamagedCheckpoint:
        return DamagedCheckpoint(partition, generation, f"its manifest {reason}")

    line, newline, body = content.partition(b"\n")
    parts = line.split(b" ")
    if not newline or len(line) > HEADER_BYTES or len(parts) != 3 or parts[0] != MAGIC:
        raise damaged("does not begin as one")
    if hashlib.sha256(body).hexdigest().encode() != parts[2]:
        raise damaged("has another checksum than it says")
    if not parts[1].isdigit():
        raise damaged("does not begin as one")
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
        raise damaged("is another one's")
    if not all(_sound(file, manifest.packs) for file in manifest.files):
        raise damaged("names what cannot be")
    return manifest


def _sound(file: File, packs: tuple[Pack, ...]) -> bool:
    """Its name stays in the folder, its blocks in their packs, and they come to its length and checksum."""
    parts = file.name.split("/")
    return (
        all(part not in ("", ".", "..") and "\0" not in part for part in parts)
        and all(0 <= block.pack < len(packs) and block.offset >= 0 and block.length > 0 for block in file.blocks)
        and all(block.offset + block.length <= packs[block.pack].length for block in file.blocks)
        and sum(block.length for block in file.blocks) == file.length
        and checksum_of(file.blocks) == file.sha256
    )
