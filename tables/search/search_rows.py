"""Search rows: what a search, and a list of a user's memories, read without SQL. They are a cache of the catalog.

DuckDB stores columns, so it takes ten milliseconds to read two hundred rows that are scattered over a million. With
search rows, only one user's memories are read: what ranking needs and an access changes from memory (`standing.py`),
terms from one scan of the store on the disk, and the bodies of the memories that are shown (`text_store.py`).

The catalog is the truth. Terms and bodies of new memories are written when a search needs them, or a little later by
`fill`, so that writers need not wait for them. The text of a memory never changes under its number (`seq`), so its
terms cannot be stale. A body that a commit changes is deleted before the commit. Rows that leave are named before the
commit and deleted after it, or at the next opening after a crash. Catalog and store have a generation, which is new
at each opening, and a counter of changes. If these differ, one of the two is an older copy, and the store is filled
again.
"""

from __future__ import annotations

import logging
import secrets
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, tzinfo
from operator import attrgetter
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from schemas.errors import DataDirError
from schemas.memories import SAID_AGAIN, Memory
from schemas.sources import speakers_in
from tables.database.shard_info import ShardInfo
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes
from tables.rocksdb import StoreDamaged
from tables.runs import Places
from tables.search.bodies import BODY_FIELDS, body_of, memory_of
from tables.search.candidates import Candidates, previous
from tables.search.held import Held, Listed, Living, Sessions, bytes_of
from tables.search.recent import Recent
from tables.search.spoken_times import SpokenTimes
from tables.search.standing import CURRENT, PINNED, Standing
from tables.search.stated import Stated, about_the_same
from tables.search.text_store import FOLDER, Stamp, TextStore, UserRows, hash_of_name
from tables.search.tokens import RULES
from tables.vectors.index import Seqs

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The maximum number of new memories that stay in memory until their rows are written. Others are read again.
_FRESH: Final = 4_096
#: Rows of other rules are not read.
_RULES: Final = RULES << 32 | zlib.crc32(",".join(BODY_FIELDS).encode())
#: Older versions' files.
_OLDER: Final = ("search.rows", "search.terms", "search.bodies")


class SearchRows:
    """The search rows of one shard. Not thread-safe: the shard serialises the calls. Raises `DataDirError`."""

    def __init__(self, folder: Path, catalog: Catalog, recent: Recent, zone: tzinfo = UTC) -> None:
        self._folder, self._catalog, self._recent = folder, catalog, recent
        #: New memories whose rows are not written yet, by number. If `_lacking`, there are others, too.
        self._fresh: dict[int, Memory] = {}
        self._lacking = False
        #: Numbers from `Stamp.filled` on whose rows are written all the same.
        self._ahead = set[int]()
        #: Numbers of memories whose bodies a recompute has deleted.
        self._bodiless: list[Seqs] = []
        #: The memories whose bodies a commit changes, from `before` to `after`.
        self._changed: dict[int, Memory] = {}
        self._standing = Standing(catalog.standing())
        self._texts = TextStore(folder / FOLDER)
        try:
            self._open(zone)
        except BaseException:
            self.close()
            raise

    def _open(self, zone: tzinfo) -> None:
        for name in _OLDER:
            (self._folder / name).unlink(missing_ok=True)
        if self._texts.stamp is not None and not self._fits(self._texts.stamp):
            self._texts.start_over()
        self.spoken = SpokenTimes(self._texts, self._standing, zone, self.memories, self._whole)
        stamp = self._texts.stamp
        if stamp is not None and stamp.leaving:
            self._texts.delete([row for row in stamp.leaving if not len(self._standing.places(_numbers([row[1]])))])
        self._generation = secrets.randbits(62) + 1
        self._filled = 0 if stamp is None else stamp.filled
        #: The catalog's changes that the store has, and the rows that the present commit deletes: see `Stamp`.
        self._changes = self._catalog.changes
        self._leaving: list[tuple[int, int]] | None = None
        self._lacking = bool(len(self._standing.next_from(self._filled, 1)))
        self._write()
        self._catalog.info.write(ShardInfo(search_rows=self._generation))

    def _fits(self, stamp: Stamp) -> bool:
        """Return whether the store has the rows of this catalog."""
        changes = self._catalog.changes
        known = (stamp.rules, stamp.generation) == (_RULES, self._catalog.info.read().search_rows)
        begun = stamp.leaving is not None and stamp.changes == changes - 1
        return known and (stamp.changes == changes or begun)

    def _write(self, *, synced: bool = False) -> None:
        times = self.spoken.read, self.spoken.rules
        stamp = Stamp(_RULES, self._generation, self._changes, self._filled, self._leaving, *times)
        try:
            self._texts.write(stamp, synced=synced)
        except StoreDamaged as exc:
            raise DataDirError(self._folder / FOLDER, f"{exc}; start the worker again: it fills its rows") from exc

    def _whole(self, read: Callable[[], T]) -> T:
        """Return the result of `read`. If the store is damaged, delete all rows and call `read` again."""
        try:
            return read()
        except StoreDamaged as exc:
            log.warning("%s: %s: its rows are filled again from the catalog", self._folder / FOLDER, exc)
            self._texts.start_over()
            self._filled, self._lacking, self._ahead = 0, True, set()
            self.spoken.start_over()
            self._write()
            return read()

    # reading

    def of_user(self, user_id: str) -> Held:
        """Return the data of a user's memories, oldest first."""
        key = (self, hash_of_name(user_id))
        found: Held | None = self._recent.get(key)
        if found is None:
            found = self._whole(lambda: self._read(user_id))
            self._recent.put(key, found, found.bytes)
        return found

    def _read(self, user_id: str) -> Held:
        self._fill(self._unfilled(user_id))
        rows = self._texts.of_user(hash_of_name(user_id))
        places = self._standing.places(rows.seqs)
        assert len(places) == len(rows.seqs), "a row that leaves is deleted"
        speakers, first = np.unique(rows.speakers, return_index=True)
        one_of_each = self.memories(places[first[speakers > 0]])
        names = frozenset(name for memory in one_of_each for name in speakers_in(memory.meta))
        sessions = Sessions(rows.sessions, rows.created_at)
        stated = Stated(rows.stated_rows, rows.stated, self._said_at(places, rows))
        return Held(places, rows.seqs, sessions, rows.terms, stated, previous(rows.sessions), names)

    def _said_at(self, places: Places, rows: UserRows) -> Seqs:
        """Return when each statement was said last (epoch ms).

        Near-copies change it, so bodies have it. They are read only if several statements are about the same.
        """
        said_at = rows.created_at.copy()
        compared = np.unique(rows.stated_rows[about_the_same(rows.stated)])
        said_at[compared] = [memory.said_at for memory in self.memories(places[compared])]
        return said_at[rows.stated_rows]

    def _unfilled(self, user_id: str) -> list[int]:
        """Return the numbers of the user's memories whose rows are not written yet, ascending."""
        if self._lacking:
            seqs = self._catalog.seqs_of(user_id, self._filled)
            return [seq for seq in seqs if seq not in self._ahead]
        return sorted(seq for seq, memory in self._fresh.items() if memory.user_id == user_id)

    def living(self, user_id: str) -> Living:
        """Count a user's current memories, and those that are not pinned."""
        flags = self._standing.rows["flags"][self._places_of(user_id)]
        current = flags & CURRENT > 0
        return Living(int(np.count_nonzero(current)), int(np.count_nonzero(current & (flags & PINNED == 0))))

    def _places_of(self, user_id: str) -> Places:
        """Return the places of a user's memories, in no particular order."""
        key = (self, hash_of_name(user_id), "places")
        found: Places | None = self._recent.get(key)
        if found is None:
            stored = self._whole(lambda: self._texts.seqs_of(hash_of_name(user_id)))
            found = self._standing.places(np.union1d(stored, _numbers(self._unfilled(user_id))))
            self._recent.put(key, found, found.nbytes)
        return found

    def memories_of(self, user_id: str) -> tuple[Memory, ...]:
        """Return a user's memories, oldest first. Calls return the same tuple while it is cached and unchanged."""
        user = hash_of_name(user_id)
        found: Listed | None = self._recent.get((self, user, "memories"))
        if found is None:
            memories = self.memories(self._places_of(user_id))
            found = self._listed(user, memories, bytes_of(memories))
        return found.memories

    def _listed(self, user: int, memories: Iterable[Memory], size: int) -> Listed:
        """Cache all memories of the user with this hash, and return them. `size` is in bytes."""
        found = Listed(tuple(sorted(memories, key=attrgetter("created_at", "seq"))), size)
        self._recent.put((self, user, "memories"), found, size)
        return found

    def stating(self, user_id: str, keys: Iterable[int]) -> list[Memory]:
        """Return the user's memories with a statement about one of these (`tables.search.stated.key_of`)."""
        held = self.of_user(user_id)
        return self.memories(held.places[held.stated.about(keys)])

    def candidates(self, held: Held) -> Candidates:
        """Return the data of the memories in `held` that ranking reads, in the order of `held`."""
        rows, places = self._standing.rows, held.places
        flags = rows["flags"][places]
        return Candidates(
            seqs=held.seqs,
            created_at=held.sessions.created_at,
            importance=rows["importance"][places],
            last_accessed=rows["last_accessed"][places],
            pinned=flags & PINNED > 0,
            current=flags & CURRENT > 0,
            previous=held.previous,
            terms=held.terms,
            stated=held.stated,
        )

    def memories(self, places: Places) -> list[Memory]:
        """Return the memories at these places, in the order of `places`.

        A memory is decoded from its body. If it has none and is not fresh, the memory is read from the catalog.
        """
        seqs = self._standing.seqs(places)
        found = {seq: self._fresh[seq] for seq in seqs.tolist() if seq in self._fresh}
        bodies = self._whole(lambda: self._texts.bodies(seqs))
        for ranked, body in zip(self._standing.ranked(places), bodies, strict=True):
            if body is not None:
                found[ranked["seq"]] = memory_of(body, ranked)
        if missing := [seq for seq in seqs.tolist() if seq not in found]:
            read = self._catalog.by_seq(missing)
            found |= read
            self._put_bodies(read.values())
        return [found[seq] for seq in seqs.tolist()]

    # writing

    def before(self, changes: Changes) -> None:
        """Delete the bodies that these changes make stale, and name the rows that leave.

        Call it before the commit.
        """
        self._texts.discard()
        staying = changes.staying(changes.updated)
        seqs = _numbers(memory.seq for memory in staying)
        self._changed = {}
        for memory, body in zip(staying, self._whole(lambda: self._texts.bodies(seqs)), strict=True):
            if body is not None and body != body_of(memory):
                self._changed[memory.seq] = memory
        self._texts.delete_bodies(_numbers(self._changed))
        self._leaving = self._rows_of(sorted(changes.leaving))
        self._write(synced=bool(changes.leaving or self._changed))

    def _rows_of(self, seqs: Sequence[int]) -> list[tuple[int, int]]:
        """Return the rows (user, number) of these memories, without those of the batch itself."""
        users = self._whole(lambda: self._texts.users(_numbers(seqs)))
        found = {seq: user for seq, user in zip(seqs, users, strict=True) if user is not None}
        if missing := [seq for seq in seqs if seq not in found]:
            found |= {seq: hash_of_name(memory.user_id) for seq, memory in self._catalog.by_seq(missing).items()}
        return [(user, seq) for seq, user in found.items()]

    def outdate(self, users: Iterable[str], seqs: Seqs) -> None:
        """Delete the bodies of these memories of `users`. Call it before a commit that changes state or metadata."""
        for user_id in users:
            self._recent.drop((self, hash_of_name(user_id), "memories"))
        for seq in seqs.tolist() if self._fresh else ():
            self._lacking |= self._fresh.pop(seq, None) is not None
        self._bodiless.append(seqs)
        self._texts.delete_bodies(seqs)
        self._leaving = []
        self._write(synced=True)

    def after(self, changes: Changes) -> None:
        """Write the changes into the rows. Call it after their commit."""
        leaving, updated = changes.leaving, changes.staying(changes.updated)
        if updated:
            self._standing.update(updated)
            for user in {hash_of_name(memory.user_id) for memory in updated if SAID_AGAIN in memory.meta}:
                self._recent.drop((self, user))
            self._fresh |= {memory.seq: memory for memory in updated if memory.seq in self._fresh}
        for memory in self._changed.values():
            self._texts.put_body(memory)
        if new := sorted(changes.staying(changes.new), key=lambda memory: memory.seq):
            self._standing.add(new)
            self._keep_fresh(new)
        for seq in leaving:
            self._fresh.pop(seq, None)
            self._ahead.discard(seq)
        self._standing.remove(_numbers(leaving))
        self._merge([*updated, *new], leaving)
        for user in {user for user, _ in self._leaving or ()}:
            self._recent.drop((self, user))
            self._recent.drop((self, user, "places"))
        self._texts.delete(self._leaving or ())
        self.follow()

    def follow(self) -> None:
        """Record that the rows match the catalog. Call it after each commit that changes memories."""
        before = self._changes, self._leaving
        self._changes, self._leaving = self._catalog.changes, None
        try:
            self._write()
        except BaseException:
            self._changes, self._leaving = before  # no later write may say that the rows match
            raise

    def _merge(self, changed: Sequence[Memory], leaving: Sequence[int]) -> None:
        """Apply a batch's changes to the cached memories of its users, so that their next list reads none again."""
        by_user: defaultdict[int, list[Memory]] = defaultdict(list)
        for memory in changed:
            by_user[hash_of_name(memory.user_id)].append(memory)
        for user in by_user.keys() | {user for user, _ in self._leaving or ()}:
            known: Listed | None = self._recent.get((self, user, "memories"))
            if known is not None:
                new = by_user[user]
                kept = {memory.seq: memory for memory in known.memories}
                old = [kept.pop(seq) for seq in (*leaving, *(memory.seq for memory in new)) if seq in kept]
                self._listed(user, [*kept.values(), *new], known.bytes + bytes_of(new) - bytes_of(old))

    def _keep_fresh(self, memories: Sequence[Memory]) -> None:
        self._fresh |= {memory.seq: memory for memory in memories}
        for user in {hash_of_name(memory.user_id) for memory in memories}:
            self._recent.drop((self, user))
            if (found := self._recent.get(key := (self, user, "places"))) is not None:
                new = [memory.seq for memory in memories if hash_of_name(memory.user_id) == user]
                found = np.append(found, self._standing.places(_numbers(new)))
                self._recent.put(key, found, found.nbytes)
        for seq in list(self._fresh)[:-_FRESH]:
            del self._fresh[seq]
            self._lacking = True

    def fill(self, most: int) -> int:
        """Write at most `most` rows, or read texts for times. Return the number of memories; 0 on a full disk."""
        try:
            filled = self._fill_up(most) or self._whole(lambda: self._fill_bodies(most))
            return filled or self.spoken.fill(most, self._write)
        except DataDirError as exc:
            log.warning("%s; searches read the catalog", exc)
            return 0

    def _fill_up(self, most: int) -> int:
        seqs = self._standing.next_from(self._filled, most).tolist()
        if not seqs:
            self._lacking = False
            return 0
        self._fill([seq for seq in seqs if seq not in self._ahead], filled=seqs[-1] + 1)
        self._ahead -= set(seqs)
        return len(seqs)

    def _fill_bodies(self, most: int) -> int:
        if not self._bodiless:
            return 0
        seqs = self._bodiless.pop()
        if len(seqs) > most:
            self._bodiless.append(seqs[most:])
        seqs = self._standing.seqs(self._standing.places(seqs[:most]))
        lacking = [seq for seq, body in zip(seqs.tolist(), self._texts.bodies(seqs), strict=True) if body is None]
        self._put_bodies(self._catalog.by_seq(lacking).values())
        return max(1, len(lacking))

    def _fill(self, seqs: Sequence[int], filled: int | None = None) -> None:
        """Write the rows and bodies of these memories, from fresh memories or from the catalog.

        With `filled`, all rows with lower numbers are written afterwards.
        """
        if not seqs and filled is None:
            return
        read = self._catalog.by_seq(seq for seq in seqs if seq not in self._fresh)
        for seq in seqs:
            self._texts.put(self._fresh.get(seq) or read[seq])
        before, self._filled = self._filled, self._filled if filled is None else filled
        try:
            self._write()
        except BaseException:
            self._filled = before
            raise
        self._ahead.update(seq for seq in seqs if seq >= self._filled)
        for seq in seqs:
            self._fresh.pop(seq, None)

    def _put_bodies(self, memories: Iterable[Memory]) -> None:
        """Write bodies. If the disk is full, the next search reads the catalog again."""
        for memory in memories:
            self._texts.put_body(memory)
        try:
            self._write()
        except DataDirError as exc:
            log.warning("%s; searches read the catalog", exc)

    def erase(self) -> None:
        """Erase the bytes of rows and bodies that were deleted."""
        self._whole(self._texts.erase)

    def close(self) -> None:
        self._recent.drop_all(self)
        self._texts.close()


def _numbers(seqs: Iterable[int]) -> Seqs:
    return np.fromiter(seqs, np.int64)
