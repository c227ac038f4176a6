"""Damage of a shard's catalog: the errors that reveal it, and the files of a damaged shard that are kept.

If a checkpoint replaces a damaged shard, its files are kept in the folder `<partition>.damaged`. Forget commands do
not reach them, so they are removed when forgotten data is erased from the shard that replaced them.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import duckdb

from schemas.errors import DamagedShard, DataDirError

log = logging.getLogger(__name__)

#: The texts of DuckDB's errors about a file of which bytes are missing or have changed. The types of these errors are
#: also those of other failures, such as a lock or a missing permission.
_SIGNS: Final = ("not a valid duckdb database file", "could not read enough bytes", "corrupt")


def kept_beside(folder: Path) -> Path:
    """Return the folder for the files of a damaged shard whose place is `folder`."""
    return folder.with_name(f"{folder.name}.damaged")


def drop_kept(folder: Path) -> None:
    """Remove the kept files of a damaged shard whose place was `folder`, if there are any. Raises `DataDirError`."""
    if (kept := kept_beside(folder)).exists():
        try:
            shutil.rmtree(kept)
        except OSError as exc:
            raise DataDirError(kept, exc.strerror or str(exc)) from exc


@contextlib.contextmanager
def damage_reported(folder: Path, partition: int) -> Iterator[None]:
    """Log an error that reveals damage of the catalog in `folder`, and raise `DamagedShard` in its place."""
    try:
        yield
    except (duckdb.Error, OSError) as exc:  # reading Arrow tables raises OSError
        why = str(exc).splitlines()[0] if str(exc) else ""
        if any(sign in why.lower() for sign in _SIGNS):
            log.warning("shard %d: %s is damaged: %s", partition, folder, why)
            command = shlex.join(["mv", str(folder), str(kept_beside(folder))])
            todo = f"replace it by a backup, or run `{command}` and start again: the worker then reads the log"
            raise DamagedShard(partition, f"{folder} is damaged ({why}): {todo}") from exc
        raise
