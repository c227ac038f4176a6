"""A new shard's catalog begins as a copy of one that was migrated, which takes longer than most tests.

`tests/tables/database/test_migrations.py` has them run.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tables.database.database import connect
from tables.database.migrations import migrate
from tables.memories.catalog import catalog
from tables.memories.catalog.catalog_file import CatalogFile


@contextlib.contextmanager
def migrated(folder: Path) -> Iterator[None]:
    """Within the block, all that this process makes; `folder` has the one that is copied."""
    pattern = folder / "pattern.duckdb"
    with connect(pattern) as db:
        migrate(db, 0)

    class Begun(CatalogFile):
        def _connected(self) -> duckdb.DuckDBPyConnection:
            if not self.path.exists():
                with contextlib.suppress(OSError):  # what opens it says why it cannot be made
                    shutil.copyfile(pattern, self.path)
            return super()._connected()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "CatalogFile", Begun)
        yield
