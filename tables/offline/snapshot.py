"""The analysts' copy of a data directory that no worker has open."""

from __future__ import annotations

from datetime import UTC, tzinfo
from pathlib import Path

import duckdb

from schemas.errors import DataDirError, ShardError
from schemas.settings import LifecycleSettings
from tables.analysts.copy import Copy, assemble, export
from tables.database.database import connect
from tables.database.inspection import catalogs, inspect_catalog
from tables.database.migrations import statement
from tables.database.shard_info import read_info
from tables.search.spoken_times import windows_at_rest


def snapshot_of_files(data_dir: Path, now: int, lifecycle: LifecycleSettings, zone: tzinfo = UTC) -> Copy:
    """Make a copy of all shards in a data directory, with scores as of `now` (epoch ms). No worker may be running.

    If `lifecycle.clock` is `event`, the scores are as of the newest access or change of state instead. Raises
    `ShardLocked`, `ShardError` and `DataDirError`.
    """
    folder, exported, newest = data_dir / "analytics", {}, 0
    for partition, path in catalogs(data_dir).items():
        if inspect_catalog(partition, path).model is None:
            continue  # nothing was ever written into this shard
        try:
            with connect(path, read_only=True) as db:
                spoken = windows_at_rest(path.parent, read_info(db).search_rows, zone)
                exported[partition] = export(db, partition, folder, spoken)
                ((last,),) = db.execute(statement("newest_event")).fetchall()
        except duckdb.Error as exc:
            raise ShardError(partition, f"{path} cannot be copied: {str(exc).splitlines()[0]}") from exc
        except OSError as exc:
            raise DataDirError(folder, exc.strerror or str(exc)) from exc
        newest = max(newest, last)
    if not exported:
        raise DataDirError(data_dir, "there are no shards in it")
    return assemble(folder, exported, newest if lifecycle.clock == "event" else now, lifecycle)
