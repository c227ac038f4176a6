"""The ids that a catalog knows, as hashes in memory, so that most questions about unknown ids need no statement."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.changes import Changes
from tables.memories.catalog.erasing import Named
from tables.memories.catalog.known_ids import KnownIds, hashes_of, hashes_of_bytes, hashes_of_names
from tables.memories.catalog.part import Part

#: The number of ids that are read from the tables at a time.
_IDS_AT_A_TIME: Final = 122_880


class Ids(Part):
    """Hashes of the ids of all applied events, memories, near-copies and archived memories, and of users who forgot.

    Ids that were deleted since the last `read` count, too.
    """

    def __init__(self, file: CatalogFile) -> None:
        super().__init__(file)
        self.read()

    def read(self) -> None:
        """Read all ids from the tables again, without those that were deleted."""
        self._ids, self._forgetting = KnownIds(), KnownIds()
        ids = self._db.sql(
            "SELECT event_id AS id FROM applied UNION ALL SELECT id FROM memories UNION ALL "
            "SELECT memory_id FROM merged UNION ALL SELECT id FROM archive"
        )
        found = []
        for batch in ids.to_arrow_reader(_IDS_AT_A_TIME):
            column = batch.column(0)
            raw = memoryview(column.storage.buffers()[1])
            found.append(hashes_of_bytes(raw[16 * column.offset : 16 * (column.offset + len(column))]))
        self._ids.add(np.concatenate([hashes_of([]), *found]))
        users = self._db.execute("SELECT DISTINCT user_id FROM tombstones").fetchall()
        self._forgetting.add(hashes_of_names(user_id for (user_id,) in users))

    def add(self, changes: Changes) -> None:
        """Add the ids of these changes. If their commit then fails, the extra ids do no harm.

        The ids of archived memories are among the known ids already.
        """
        ids = [event_id for _, event_id in changes.applied]
        ids += [memory.id for memory in changes.new.values()]
        ids += [one.memory_id for one in changes.merged]
        self._ids.add(hashes_of(ids))
        if changes.tombstones:
            self._forgetting.add(hashes_of_names(one.user_id for one in changes.tombstones))

    def perhaps(self, names: Iterable[Named]) -> list[Named]:
        """Return the names (user, id) whose id may be known. The other ids are certainly not in the catalog."""
        asked = list(names)
        return [asked[place] for place in np.flatnonzero(self._ids.may_hold(hashes_of([one[1] for one in asked])))]

    def known(self, ids: Sequence[uuid.UUID]) -> npt.NDArray[np.bool_]:
        """Return whether each id is known, bool[n].

        No statement runs: the hashes have 64 bits, which is enough to distinguish ids that no client has chosen.
        """
        return self._ids.may_hold(hashes_of(ids))

    def with_tombstones(self, user_ids: Iterable[str]) -> list[str]:
        """Return the users who may have tombstones. The other users certainly have none."""
        users = list(user_ids)
        held = self._forgetting.may_hold(hashes_of_names(users))
        return [user for user, may_hold in zip(users, held, strict=True) if may_hold]

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        """The size of the hashes of ids in memory, in bytes."""
        return self._ids.nbytes
