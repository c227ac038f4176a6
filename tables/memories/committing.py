"""The commit of a batch's changes to a shard: its steps, and what is left if one of them fails.

    1. `outdate`         the search rows: bodies that become stale are deleted, and rows that leave are named
    2. `write`           the catalog: one transaction, from which on the events are applied
    3. `follow`          the search rows
    4. `remove_vectors`  the index: rows that leave
    5. `add_vectors`     the index: new rows

The catalog is the truth. After a failure in step 1 or before the end of the transaction, nothing has changed, and the
events are applied again. After a later failure, the events are applied, and the rows and the index lack some changes.
Then the shard takes no more changes, and its next opening repairs both, as after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes
from tables.search.search_rows import SearchRows
from tables.vectors.index import VectorIndex, cells_of, matrix


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `now` is epoch ms, `position` as in `Catalog.write`."""

    catalog: Catalog
    rows: SearchRows
    index: VectorIndex
    changes: Changes
    now: int
    position: int | None

    def run(self) -> None:
        """Do all steps. Raises `DataDirError` and DuckDB's errors."""
        self.outdate()
        self.write()
        self.follow()
        self.remove_vectors()
        self.add_vectors()

    def outdate(self) -> None:
        self.rows.before(self.changes)

    def write(self) -> None:
        self.catalog.write(self.changes, self.now, self.position)

    def follow(self) -> None:
        self.rows.after(self.changes)

    def remove_vectors(self) -> None:
        self.index.remove(np.array(self.changes.leaving, np.int64))

    def add_vectors(self) -> None:
        if staying := self.changes.staying(self.changes.new):
            self.index.add(
                np.array([memory.seq for memory in staying], np.int64),
                cells_of([memory.user_id for memory in staying]),
                matrix([self.changes.vectors[memory.seq] for memory in staying]),
            )
