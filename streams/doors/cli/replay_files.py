"""Compares the shards that a replay has rebuilt with the live shards, or replaces the live shards."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from schemas.errors import DataDirError, SiltstoneError
from streams.doors.cli import show
from streams.doors.cli.shard_files import RowProgress, shard_files
from tables.database.inspection import catalogs
from tables.offline.diff import TableDifference, differences


def free(data: Path) -> None:
    """Check that no other process has a shard in `data` open.

    Otherwise raise `SiltstoneError`. This error is also raised if there are no shards.
    """
    files = shard_files(data)
    if files.held:
        raise SiltstoneError(f"{files.holders}: stop it first, and start it again afterwards")


def compared(data: Path, folder: Path, users: tuple[str, ...], tell: RowProgress) -> list[TableDifference]:
    """Compare the live shards in `data` with the rebuilt shards in `folder`, and return the differences.

    If `users` are given, only the rows of these users are compared.
    """
    free(data)
    live, made = catalogs(data), catalogs(folder)
    both = sorted(made if users else live.keys() | made.keys())
    found: list[TableDifference] = []
    for done, partition in enumerate(both, 1):
        if partition in live and partition in made:
            found += differences(partition, live[partition], made[partition], users)
        else:
            found.append(TableDifference(partition, "shard", int(partition in live), int(partition in made)))
        tell(done, len(both))
    return found


def swap(data: Path, folder: Path, stamp: str) -> Path | None:
    """Replace the live shards in `data` by the rebuilt shards in `folder`.

    Return the folder to which the live shards were moved, or None if there were no live shards. Its name ends with
    `stamp`.
    """
    live, made = data / "shards", folder / "shards"
    if data.resolve() == folder.resolve():
        raise SiltstoneError(f"{folder} is the data directory itself: rebuild into another folder")
    if not made.is_dir():
        raise DataDirError(folder, "there are no rebuilt shards in it")
    if missing := sorted(catalogs(data).keys() - catalogs(folder).keys()):
        raise SiltstoneError(f"{folder} has no shards for partitions {missing}: nothing was swapped")
    former = data / f"shards.before-{stamp}" if live.exists() else None
    if former is not None:
        free(data)
    data.mkdir(parents=True, exist_ok=True)
    if data.stat().st_dev != made.stat().st_dev:
        raise SiltstoneError(
            f"{folder} and {data} are on different disks: first move the folder to the disk of the data directory"
        )
    try:
        if former is not None:
            live.rename(former)
        try:
            made.rename(live)
        except OSError:
            if former is not None:
                former.rename(live)
            raise
    except OSError as exc:
        raise DataDirError(data, exc.strerror or str(exc)) from exc
    return former


def table_of(found: list[TableDifference]) -> Table:
    return show.table(
        "Differences",
        (">shard", "table", ">only live", ">only rebuilt", "for example"),
        ((one.partition, one.table, one.only_live, one.only_rebuilt, ", ".join(one.ids)) for one in found),
    )


def as_rows(found: list[TableDifference]) -> list[dict[str, Any]]:
    return [asdict(one) for one in found]
