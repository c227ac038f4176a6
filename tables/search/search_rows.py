"""Search rows: a cache of the catalog in three files, from which a search reads a shard's memories without SQL.

DuckDB stores columns, so it takes ten milliseconds to read two hundred rows that are scattered over a million. With
these files, a search reads only one user's memories: a row of 96 bytes for each memory (`search.rows`), its terms
(`search.terms`), and the body of each memory that is shown (`search.bodies`).

The catalog is the truth. A row is written after the commit of its memory. Its terms and body are added when a search
needs them, or a little later, so that writers need not wait for them. When a shard is opened, the rows are compared
with the columns of `Catalog.standing` in one scan. The text of a memory never changes under its number (`seq`), so
its terms cannot be stale. A body can be stale: before a commit that changes it, it is marked as stale, on the disk
too. Checksums reveal all other damage by a crash. Catalog and rows have a generation, which is new at each opening,
and a counter of changes. If these differ, one of the two is an older copy, and all rows are recreated.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from schemas.errors import DataDirError
from schemas.memories import Memory
from tables.database.shard_info import ShardInfo
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes
from tables.runs import Places
from tables.search import bodies, terms_file
from tables.search.bodies import BodiesFile, body_of, check_of, memory_of
from tables.search.candidates import Candidates, previous
from tables.search.recent import Recent
from tables.search.row_file import BODY, CURRENT, GONE, HELD, PINNED, ROW, RowFile, Rows, checks, each
from tables.search.terms import Terms, counted
from tables.search.terms_file import TermsFile

log = logging.getLogger(__name__)

#: The terms or bodies file is emptied and filled again when its unused bytes exceed both this number and its used
#: bytes.
_WASTE: Final = 64 * 1024 * 1024
#: Errors of a full disk, a file-size limit and a quota.
_NO_ROOM: Final = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)

#: The maximum number of new memories that stay in memory until their terms are written. Older ones are read again
#: from the catalog.
_FRESH: Final = 4_096

Seqs = npt.NDArray[np.int64]
Standing = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Held:
    """The data of a user's memories, oldest first: the places of their rows, and fields that no access changes.

    Valid until the user's memories change.
    """

    places: Places
    seqs: Seqs
    terms: Terms
    previous: Seqs
    speakers: frozenset[str]

    def __len__(self) -> int:
        return len(self.places)

    @property
    def bytes(self) -> int:
        """The estimated size of this object in memory, in bytes."""
        return 1000 + 8 * len(self.terms.words) + 36 * len(self)


class Living(NamedTuple):
    """The number of a user's current memories (`Memory.current`), and the number of these that are not pinned."""

    current: int
    loose: int


class Sessions(NamedTuple):
    """For each memory of a user: its `session_number`, uint64[n], and its creation time (epoch ms), int64[n]."""

    numbers: npt.NDArray[np.uint64]
    created_at: Seqs


class SearchRows:
    """The search rows of one shard. Not thread-safe: the shard serialises the calls. Raises `DataDirError`."""

    def __init__(self, folder: Path, catalog: Catalog, recent: Recent) -> None:
        self._folder, self._catalog, self._recent = folder, catalog, recent
        #: True if rows that are not in `_fresh` may lack their terms or body.
        self._lacking = True
        self._new_bodies: dict[int, bytes] = {}
        #: New memories by the place of their row. The terms and bodies of these rows are not written yet.
        self._fresh: dict[int, Memory] = {}
        with self._translated():
            self._file = RowFile(folder / "search.rows")
            self._terms = TermsFile(folder / "search.terms")
            self._bodies = BodiesFile(folder / "search.bodies")
            try:
                self._open()
            except BaseException:
                self.close()
                raise

    def _open(self) -> None:
        standing = self._catalog.standing()
        known = self._file.load(self._catalog.info.read().search_rows or 0, self._catalog.changes)
        old = self._file.rows if known else np.zeros(0, ROW)
        if not (checks(old) == old["check"]).all():
            log.warning("%s: some rows are damaged: all rows are recreated", self._folder)
            known, old = False, np.zeros(0, ROW)
        held = old[old["flags"] & HELD > 0]
        self._terms.begin(int((held["terms_at"] + terms_file.bytes_of(held)).max(initial=0)))
        self._bodies.begin(int((old["body_at"] + bodies.bytes_of(old)).max(initial=0)))
        stays = _among(old["seq"], standing["seq"])
        self._erase(np.flatnonzero(~stays & (old["flags"] & GONE == 0)))
        if not known or int(stays.sum()) < len(standing["seq"]) or len(old) > 2 * len(standing["seq"]) + 1000:
            copied = old[stays].copy()
            del old, held
            self._file.begin(standing["seq"])
            self._file.rows[self._file.places(copied["seq"])] = copied
        self._drop_waste()
        self._stand(self._file.places(standing["seq"]), standing)
        generation = secrets.randbits(62) + 1
        self._file.stamp(generation, self._catalog.changes)
        self._catalog.info.write(ShardInfo(search_rows=generation))

    def _drop_waste(self) -> None:
        """Empty the files in which most bytes are unused. Their contents are written again later, by `fill`."""
        rows = self._file.rows
        of_worth = int(bodies.bytes_of(rows).sum())
        if self._bodies.size - of_worth > max(_WASTE, of_worth):
            rows["flags"] &= ~np.uint32(BODY)
            rows["body"] = 0
            rows["check"] = checks(rows)
            self._bodies.begin(0)
        of_worth = int(terms_file.bytes_of(rows).sum())
        if self._terms.size - of_worth > max(_WASTE, of_worth):
            rows["flags"] &= ~np.uint32(HELD)
            self._terms.begin(0)

    def of_user(self, user_id: str, seqs: Callable[[], Seqs]) -> Held:
        """Return the data of a user's memories, oldest first.

        If it is not cached, `seqs` is called. It returns the numbers of all memories in the user's cell of the index,
        which other users may share.
        """
        key = (self, _hashed(user_id))
        found: Held | None = self._recent.get(key)
        if found is None:
            found = self._read(_hashed(user_id), seqs())
            self._recent.put(key, found, found.bytes)
        return found

    def _read(self, user: int, seqs: Seqs) -> Held:
        places = self._file.places(seqs)
        lacking = places[self._file.rows["flags"][places] & (HELD | GONE) == 0]
        if len(lacking):
            self._fill(np.sort(lacking))
        places = places[self._file.rows["user"][places] == np.uint64(user)]
        rows = self._file.rows[places]
        order = np.lexsort((rows["seq"], rows["created_at"]))
        places, rows = places[order], rows[order]
        terms, lost = self._terms.gathered(rows)
        if lost.any():
            self._fill(np.sort(places[lost]))
            rows = self._file.rows[places]
            terms, _ = self._terms.gathered(rows)
        speakers, first = np.unique(rows["speakers"], return_index=True)
        one_of_each = self.memories(places[first[speakers > 0]])
        names = frozenset(name for memory in one_of_each for name in memory.meta["speakers"])
        return Held(places, rows["seq"].copy(), terms, previous(rows["session"]), names)

    def living(self, user_id: str, seqs: Seqs) -> Living:
        """Count a user's current memories, and those that are not pinned. `seqs` are all numbers in the user's cell.

        The owner of a row without terms is not known, so the row counts as the user's.
        """
        rows = self._file.rows
        places = self._file.places(seqs)
        flags = rows["flags"][places]
        mine = (rows["user"][places] == np.uint64(_hashed(user_id))) | (flags & HELD == 0)
        current = mine & (flags & (CURRENT | GONE) == CURRENT)
        return Living(int(np.count_nonzero(current)), int(np.count_nonzero(current & (flags & PINNED == 0))))

    def candidates(self, held: Held) -> Candidates:
        """Return the data of the memories in `held` that ranking reads, in the order of `held`."""
        rows, places = self._file.rows, held.places
        flags = rows["flags"][places]
        return Candidates(
            seqs=held.seqs,
            importance=rows["importance"][places],
            last_accessed=rows["last_accessed"][places],
            pinned=flags & PINNED > 0,
            current=flags & CURRENT > 0,
            previous=held.previous,
            terms=held.terms,
        )

    def sessions(self, held: Held) -> Sessions:
        """Return the sessions and creation times of the memories in `held`, in the order of `held`."""
        rows, places = self._file.rows, held.places
        return Sessions(rows["session"][places], rows["created_at"][places])

    def memories(self, places: Places) -> list[Memory]:
        """Return the memories whose rows are at these places, in the order of `places`.

        A memory is decoded from its body. If the body is stale, the memory is read from the catalog.
        """
        rows = self._file.rows[places]
        found: dict[int, Memory] = {}
        for number, row in enumerate(each(rows)):
            if (body := self._bodies.of(row)) is not None:
                found[number] = memory_of(row, body)
        stale = [number for number in range(len(rows)) if number not in found]
        if stale:
            read = self._catalog.by_seq(rows["seq"][stale].tolist())
            found |= {number: read[int(rows["seq"][number])] for number in stale}
            self._put_bodies(places[stale], [body_of(found[number]) for number in stale])
        return [found[number] for number in range(len(rows))]

    def before(self, changes: Changes) -> None:
        """Mark the bodies that these changes make stale, and make room for new rows. Call it before the commit."""
        leaving = set(changes.leaving)
        staying = {memory.seq: memory for memory in changes.updated.values() if memory.seq not in leaving}
        places = self._file.places(np.array(list(staying), np.int64))
        self._new_bodies = {}
        for place, row in zip(places.tolist(), each(self._file.rows[places]), strict=True):
            body = body_of(staying[row.seq])
            if not row.flags & BODY or check_of(body, row.seq) != row.body_check:
                self._new_bodies[place] = body
        with self._translated():
            self._file.reserve(changes.numbered)
            self._outdate(np.array(list(self._new_bodies), np.int64))

    def outdate(self, seqs: Seqs) -> None:
        """Mark the bodies of these memories as stale. Call it before a commit that changes state or metadata."""
        places = self._file.places(seqs)
        for place in places.tolist() if self._fresh else ():
            self._fresh.pop(place, None)
        self._lacking = True
        with self._translated():
            self._outdate(places)

    def _outdate(self, places: Places) -> None:
        flags = self._file.rows["flags"]
        if (flags[places] & BODY).any():
            flags[places] &= ~np.uint32(BODY)
            self._file.sync()

    def after(self, changes: Changes) -> None:
        """Write the changes into the rows. Call it after their commit.

        New rows get their terms and bodies when a search needs them, or by `fill`.
        """
        leaving = set(changes.leaving)
        if updated := [memory for memory in changes.updated.values() if memory.seq not in leaving]:
            places = self._file.places(np.array([memory.seq for memory in updated], np.int64))
            self._stand(places, _standing(updated))
            self._fresh |= {p: m for p, m in zip(places.tolist(), updated, strict=True) if p in self._fresh}
        if new := sorted((m for m in changes.new.values() if m.seq not in leaving), key=lambda memory: memory.seq):
            places = self._file.add(np.array([memory.seq for memory in new], np.int64))
            self._stand(places, _standing(new))
            self._keep_fresh(places, new)
        if self._new_bodies:
            self._put_bodies(np.array(list(self._new_bodies), np.int64), list(self._new_bodies.values()))
            self._new_bodies = {}
        if leaving:
            self._erase(self._file.places(np.array(sorted(leaving), np.int64)))
        self.follow()

    def follow(self) -> None:
        """Record that the rows match the catalog. Call it after each commit that changes memories."""
        self._file.follow(self._catalog.changes)

    def _keep_fresh(self, places: Places, memories: Sequence[Memory]) -> None:
        self._fresh.update(zip(places.tolist(), memories, strict=True))
        for place in list(self._fresh)[:-_FRESH]:
            del self._fresh[place]
            self._lacking = True
        for user_id in {memory.user_id for memory in memories}:
            self._recent.drop((self, _hashed(user_id)))

    def fill(self, most: int) -> int:
        """Write missing terms and bodies of at most `most` rows. Return the number of rows that were written.

        The result is also 0 if the disk is full.
        """
        places = np.array(sorted(list(self._fresh)[:most]), np.int64)
        if self._lacking and not self._fresh:
            flags = self._file.rows["flags"]
            places = np.flatnonzero((flags & (HELD | BODY) != HELD | BODY) & (flags & GONE == 0))[:most]
            self._lacking = len(places) == most
        if not len(places):
            return 0
        try:
            self._fill(places)
        except DataDirError as exc:
            self._lacking = True
            log.warning("%s; searches read the catalog", exc)
            return 0
        return len(places)

    def _fill(self, places: Places) -> None:
        """Write the rows at these places, with terms and bodies, from fresh memories or from the catalog."""
        fresh = {place: self._fresh[place] for place in places.tolist() if place in self._fresh}
        numbers = dict(zip(places.tolist(), self._file.seqs[places].tolist(), strict=True))
        read = self._catalog.by_seq(seq for place, seq in numbers.items() if place not in fresh)
        memories = [fresh[place] if place in fresh else read[seq] for place, seq in numbers.items()]
        with self._translated():
            self._put(places, memories)
        for place in fresh:
            del self._fresh[place]

    def _put(self, places: Places, memories: Sequence[Memory]) -> None:
        """Write the rows, terms and bodies of these memories. Raises `OSError`."""
        several = [counted(memory.text) for memory in memories]
        rows = self._file.rows[places]
        rows["terms_at"] = self._terms.put(rows["seq"], several)
        rows["terms"] = [len(one.words) for one in several]
        rows["length"] = [one.length for one in several]
        rows["user"] = [_hashed(memory.user_id) for memory in memories]
        rows["session"] = [session_number(memory.session_id) for memory in memories]
        rows["created_at"] = [memory.created_at for memory in memories]
        rows["speakers"] = [_speakers(memory) for memory in memories]
        rows["flags"] |= HELD
        self._forget_users(rows)
        rows["check"] = checks(rows)
        self._file.rows[places] = rows
        self._stand(places, _standing(memories))
        self._put_bodies(places, [body_of(memory) for memory in memories])

    def _put_bodies(self, places: Places, written: Sequence[bytes]) -> None:
        """Write new bodies and overwrite the old ones with zeros. After a failure, `fill` tries again later."""
        rows = self._file.rows[places]
        try:
            for row in each(rows[rows["body"] > 0]):
                self._bodies.wipe(row)
            rows["body_at"] = self._bodies.put(written)
        except OSError as exc:
            self._lacking = True
            log.warning("%s: bodies cannot be written: %s", self._folder, exc.strerror)
            return
        rows["body"] = [len(body) for body in written]
        rows["body_check"] = [check_of(body, seq) for body, seq in zip(written, rows["seq"].tolist(), strict=True)]
        rows["flags"] |= BODY
        rows["check"] = checks(rows)
        self._file.rows[places] = rows

    def _stand(self, places: Places, standing: Standing) -> None:
        """Write importance, accesses and flags of rows, but no unchanged values, so that their pages stay clean."""
        rows = self._file.rows
        flags = rows["flags"][places] & ~np.uint32(PINNED | CURRENT | GONE)
        flags |= np.where(standing["pinned"], np.uint32(PINNED), np.uint32(0))
        flags |= np.where(standing["current"], np.uint32(CURRENT), np.uint32(0))
        columns = {name: standing[name] for name in ("importance", "last_accessed", "access_count")} | {
            "flags": flags
        }
        for name, values in columns.items():
            other = np.flatnonzero(rows[name][places] != values)
            rows[name][places[other]] = values[other]

    def _erase(self, places: Places) -> None:
        """Erase these rows with their terms and bodies. Only the number of a row stays."""
        self._forget_users(self._file.rows[places])
        for place in places.tolist() if self._fresh else ():
            self._fresh.pop(place, None)
        for row in each(self._file.rows[places]):
            if row.flags & HELD:
                self._terms.wipe(row)
            if row.body:
                self._bodies.wipe(row)
        gone = np.zeros(len(places), ROW)
        gone["seq"], gone["flags"] = self._file.seqs[places], GONE
        gone["check"] = checks(gone)
        self._file.rows[places] = gone

    def _forget_users(self, rows: Rows) -> None:
        """Drop the users of these rows from the cache: their memories have changed."""
        for user in set(rows["user"].tolist()):
            self._recent.drop((self, user))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            why = exc.strerror or str(exc)
            raise DataDirError(self._folder, f"{why} (is the disk full?)" if exc.errno in _NO_ROOM else why) from exc

    def close(self) -> None:
        self._recent.drop_all(self)
        for file in (self._file, self._terms, self._bodies):
            file.close()


def _among(seqs: Seqs, others: Seqs) -> npt.NDArray[np.bool_]:
    """Return whether each of `seqs` is in `others`, bool[n]. Both arrays must ascend."""
    if not len(others):
        return np.zeros(len(seqs), np.bool_)
    found: npt.NDArray[np.bool_] = others[np.minimum(np.searchsorted(others, seqs), len(others) - 1)] == seqs
    return found


def _standing(memories: Sequence[Memory]) -> Standing:
    return {
        "importance": np.array([memory.importance for memory in memories], np.float64),
        "last_accessed": np.array([memory.last_accessed for memory in memories], np.int64),
        "access_count": np.array([memory.access_count for memory in memories], np.int64),
        "pinned": np.array([memory.pinned for memory in memories], np.bool_),
        "current": np.array([memory.current for memory in memories], np.bool_),
    }


def session_number(session_id: str | None) -> int:
    """Return a hash of a session's id, which is never 0; return 0 if there is no session."""
    return 0 if session_id is None else _hashed(session_id) | 1


@lru_cache(maxsize=16_384)
def _hashed(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _speakers(memory: Memory) -> int:
    speakers = memory.meta.get("speakers")
    return zlib.crc32(orjson.dumps(speakers)) | 1 if speakers else 0
