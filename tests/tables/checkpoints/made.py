"""Snapshots for tests: folders of files with bytes that are easy to change."""

from __future__ import annotations

import random
from collections.abc import Collection
from pathlib import Path

from tables.checkpoints.snapshot import Facts, Position, Snapshot, SnapshotFile


def facts(*, partition: int = 3, epoch: int = 1, at: int = 1_000_000, partitions: int = 8) -> Facts:
    return Facts(
        partition=partition,
        partitions=partitions,
        model="toy",
        dimension=4,
        at=at,
        epoch=epoch,
        positions={"long-term": Position("topic-id", 12)},
    )


def snapshot(folder: Path, of: Facts | None = None, sealed: Collection[str] = ()) -> Snapshot:
    """All files below a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path: path.relative_to(folder).as_posix() for path in paths}
    return Snapshot(
        of or facts(),
        [SnapshotFile(names[path], path, path.stat().st_size, names[path] in sealed) for path in paths],
    )


def noise(length: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(length)


def written(folder: Path, **files: bytes) -> Path:
    """Files whose names have `__` for a slash and `_` for a dot: `shard__catalog_duckdb`."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
