"""The index of all vectors of a shard: sealed segments, which are mapped files, and new vectors in memory.

    index = SegmentedIndex(folder, 384, "shard 0")
    index.load(catalog.fits, catalog.next_stamp, catalog.changes)   # False: compare the index with the catalog
    index.add(seqs, cells, vectors)
    index.tidy()                                   # once a minute
    index.close(catalog.changes)

When there are enough new vectors, they are frozen, and a thread seals them: it writes them into a segment. Another
thread merges segments. The next call of `add` (if it seals) or `tidy` takes over finished segments and replaces the
manifest. After a crash, there is the old manifest or the new one. At the next opening, vectors that the segments lack
are added from the catalog. If the disk is full, segments are written later.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from schemas.errors import DataDirError
from tables.paths import synced
from tables.vectors import manifest as files
from tables.vectors.cells import Cells, NewCells
from tables.vectors.index import ReadVectors, Seqs, Vectors
from tables.vectors.manifest import Manifest, Stamp, name_of, read_manifest, segment_files, write_manifest
from tables.vectors.merging import MOST_ROWS, NewLists, StoredLists, Writing, to_merge
from tables.vectors.segment import Segment, SegmentRows
from tables.vectors.segment_file import Lists

log = logging.getLogger(__name__)

#: The number of vectors that `fill` adds at a time.
_AT_A_TIME: Final = 10_000
#: `add` seals new vectors when they have at least `_SEAL_BYTES`, and are at least 1/`_SEAL_SHARE` of all rows.
_SEAL_BYTES: Final = 16 << 20
_SEAL_SHARE: Final = 128
#: `tidy` waits for the end of a write only if the new segment has at most 1/`_LITTLE` of `enough` rows.
_LITTLE: Final = 8
#: If there are more segments than this, `add` starts a merge when it seals vectors. Otherwise only `tidy` does.
_MANY: Final = 8
#: `tidy` always seals the new vectors of an index with at most `SMALL` rows. In a larger index, it seals them when
#: they are a tenth of all rows, or when it has postponed the sealing `PUT_OFF` times.
SMALL: Final = 10_000
PUT_OFF: Final = 60


class SegmentedIndex:
    """The index of a shard's vectors. Not thread-safe: the shard serialises the calls. `name` is for log lines."""

    def __init__(self, folder: Path, dimension: int, name: str) -> None:
        self.dimension = dimension
        #: Returns the stamp of the next manifest, given the stamp of the last one. While it is None, no manifest is
        #: written, and only this object knows its segments.
        self._stamp: Callable[[Stamp | None], Stamp] | None = None
        self._folder, self._name = folder, name
        self._manifest: Manifest | None = None
        self._segments: list[Segment] = []
        self._new, self._frozen = NewCells(dimension), NewCells(dimension)
        self._parts: tuple[Cells, ...] = ()
        self._sealing: Writing | None = None
        self._merging: Writing | None = None
        #: Numbers of vectors that were removed while a segment was being written.
        self._went: list[Seqs] = []
        self._guard = threading.Lock()
        #: `_stuck`: a write failed, and `tidy` will try again. `_told`: the failure was logged.
        self._told = self._stuck = False
        self._put_off = 0
        self._set_parts()

    # segments

    def load(self, fits: Callable[[Stamp], bool], stamp: Callable[[Stamp | None], Stamp], changes: int) -> bool:
        """Open the catalog's segments: see `VectorIndex`.

        Segment files that the manifest does not name are removed, and a manifest that does not belong to the catalog.
        """
        self._stamp = stamp
        found = read_manifest(self._folder)
        if found is None and (self._folder / files.NAME).exists():
            log.warning("%s: %s cannot be read: its segments are rebuilt", self._name, files.NAME)
        if found is not None and (found.dimension != self.dimension or not fits(found.stamp)):
            log.warning("%s: %s does not belong to this catalog: its segments are rebuilt", self._name, files.NAME)
            found = None
        whole = found is not None and found.changes == changes
        for named in found.segments if found is not None else ():
            segment = Segment.opened(self._folder / files.FOLDER / named.name, self.dimension)
            if segment is not None and segment.named == msgspec.structs.replace(named, gone=segment.gone):
                self._segments.append(segment)
                whole = whole and segment.gone == named.gone
                continue
            whole = False
            log.warning(
                "%s: %s is damaged: its %d vectors are added again from the stored vectors",
                self._name,
                named.name,
                named.rows,
            )
        if found is None:
            (self._folder / files.NAME).unlink(missing_ok=True)
        if not whole:
            for segment in self._segments:
                segment.wipe_again()
        self._manifest = found
        self.drop_others()
        self._set_parts()
        return whole

    def drop_others(self) -> None:
        """Remove all segment files that this index does not use."""
        kept = {segment.path for segment in self._segments}
        for path in segment_files(self._folder):
            if path not in kept:
                path.unlink(missing_ok=True)

    def _set_parts(self) -> None:
        self._parts = tuple(part for part in (*self._segments, self._frozen, self._new) if len(part))

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def segments(self) -> Sequence[Segment]:
        """The sealed segments."""
        return tuple(self._segments)

    @property
    def unsealed(self) -> int:
        """The number of vectors that are only in memory, not in a segment."""
        return len(self._new) + len(self._frozen)

    def seqs(self) -> Seqs:
        """Return the memory numbers of all vectors, ascending."""
        held = [part.seqs() for part in self._parts]
        return np.sort(np.concatenate(held)) if held else np.empty(0, np.int64)

    # queries

    def similarities(self, cell: int, query: Vectors, seqs: Seqs) -> Vectors:
        """Return the cosine of `query`, float32[d], with each vector of `seqs`. See `Cells.similarities`."""
        found: Vectors | None = None
        for part in self._parts:
            if part.list_of(cell) >= 0:
                some = part.similarities(cell, query, seqs)
                found = some if found is None else found + some
        return np.zeros(len(seqs), np.float32) if found is None else found

    def near(self, cells: Seqs, queries: Vectors, cosine: float) -> dict[int, list[int]]:
        """For each row of `queries`, float32[n, d], return the numbers of near vectors in the row's cell, ascending.

        See `Cells.near`.
        """
        found: dict[int, list[int]] = {}
        for part in self._parts:
            for row, seqs in part.near(cells, queries, cosine).items():
                found[row] = sorted([*found[row], *seqs]) if row in found else seqs
        return found

    # changes

    def add(self, seqs: Seqs, cells: Seqs, vectors: Vectors) -> None:
        """Add vectors, float32[n, d]. Raises ValueError if the dimension differs."""
        self._new.add(seqs, cells, vectors)
        if len(self._new) == len(seqs):
            self._set_parts()
        if len(self._new) * 4 * self.dimension >= _SEAL_BYTES:
            self._make_room()

    def fill(self, seqs: Seqs, cells: Seqs, read: ReadVectors, tell: Callable[[int], None]) -> None:
        """Add many vectors: directly to segments, if they are enough for one."""
        done = 0
        while len(seqs) - done >= self.enough:
            end = min(len(seqs), done + MOST_ROWS)
            if not self.build(StoredLists(seqs[done:end], cells[done:end], read, done)):
                break
            done = end
            tell(done)
        for start in range(done, len(seqs), _AT_A_TIME):
            part = np.arange(start, min(len(seqs), start + _AT_A_TIME))
            self.add(seqs[part], cells[part], read(part))
            tell(start + len(part))

    def verify(self, seqs: Seqs) -> bool:
        return np.array_equal(seqs, self.seqs())

    @property
    def bytes(self) -> int:
        return sum(segment.layout.bytes for segment in self._segments) + 4 * self.dimension * self.unsealed

    def build(self, lists: Lists) -> bool:
        """Write a segment of these rows, which need not fit in memory, and wait for it. Return False if it failed."""
        self._finish(self._merging)
        self._merging = self._writing([], lambda: [lists])
        self._finish(self._merging)
        return not self._stuck

    def _make_room(self) -> None:
        self._take_over()
        if self._stuck or len(self._new) < self.enough:
            return
        if self._sealing is not None and len(self._new) >= 2 * self.enough:
            self._finish(self._sealing)  # wait, because with a slow disk, new vectors would fill the memory
        self._seal()
        if len(self._segments) > _MANY:
            self._merge()

    @property
    def enough(self) -> int:
        """The minimum number of new rows for which `add` writes a segment."""
        return max(_SEAL_BYTES // (4 * self.dimension), len(self) // _SEAL_SHARE)

    def remove(self, seqs: Seqs) -> None:
        """Remove vectors from memory, and overwrite them in the files.

        If a file cannot be written now, `erase` overwrites its vectors later.
        """
        if not len(seqs):
            return
        seqs = np.ascontiguousarray(seqs, np.int64)
        if self._sealing is not None:
            self._sealing.wait()  # the sealing thread reads the frozen vectors; the wait is short
        self._new.remove(seqs)
        self._frozen.remove(seqs)
        if self._sealing is not None or self._merging is not None:
            self._went.append(seqs)
        with self._guard:
            for segment in self._segments:
                try:
                    segment.wipe(seqs)
                except OSError as exc:
                    told = "%s: forgotten vectors stay in %s for now: %s"
                    log.warning(told, self._name, segment.path.name, exc.strerror)
        self._set_parts()

    def tidy(self) -> None:
        """Take over finished segments, seal new vectors (see `SMALL`), and start a merge if one is needed.

        Call it once a minute. It waits for the end of a write only if the segment is small (`_LITTLE`).
        """
        self._take_over()
        self._stuck = False
        new, held = self.unsealed, len(self)
        if new and (held <= SMALL or new * 10 >= held or self._put_off >= PUT_OFF or len(self._frozen)):
            self._put_off = 0
            self._seal()
            if new * _LITTLE <= self.enough:
                self._finish(self._sealing)
        elif new:
            self._put_off += 1
        self._merge()
        if self._merging is not None and sum(map(len, self._merging.sources)) * _LITTLE <= self.enough:
            self._finish(self._merging)

    def flush(self) -> None:
        """Seal all vectors in memory, and wait for it. Vectors for which the disk has no room stay in memory."""
        self._finish(self._sealing)
        for _ in range(2):  # first frozen vectors of a failed attempt, then new vectors
            self._seal()
            self._finish(self._sealing)

    def merge_all(self) -> None:
        """Merge segments until no merge is needed or a write fails. Blocks."""
        self._stuck = False
        while not self._stuck:
            self._merge()
            if self._merging is None:
                return
            self._finish(self._merging)

    def erase(self) -> None:
        """Overwrite all removed vectors again, and sync the files to the disk. Raises `DataDirError`."""
        self._give_up_merging()
        self._finish(self._sealing)
        try:
            for segment in self._segments:
                if segment.gone:
                    segment.sync()
        except OSError as exc:
            raise DataDirError(self._folder, f"forgotten vectors cannot be overwritten: {exc.strerror}") from exc

    def note(self, changes: int | None) -> None:
        """Record in the manifest that the segments have exactly the catalog's vectors after this number of changes.

        If `changes` is None, record that the segments may differ from the catalog. Raises OSError.
        """
        if self._manifest is None:
            return
        noted = msgspec.structs.replace(
            self._manifest, changes=changes, segments=[one.named for one in self._segments]
        )
        if noted != self._manifest:
            write_manifest(self._folder, noted)
            self._manifest = noted

    def close(self, changes: int | None) -> None:
        """Seal new vectors. If all vectors are sealed, record this in the manifest: see `note`.

        `changes` is the catalog's number of changes; None if the index lacks changes of the catalog. Raises
        `DataDirError`.
        """
        self._stuck = False
        self._give_up_merging()
        try:
            self.flush()
            if not self.unsealed:
                self.note(changes)
        except OSError as exc:
            raise DataDirError(self._folder, f"{files.NAME} cannot be written: {exc.strerror}") from exc
        finally:
            self._parts, self._segments = (), []

    def publish(self, stamp: Callable[[Stamp | None], Stamp]) -> None:
        """Replace the shard's index on the disk by this one, and remove the old segments. Raises `DataDirError`."""
        self._stamp, self._manifest = stamp, read_manifest(self._folder)
        self._finish(self._sealing)
        self._finish(self._merging)
        try:
            self._swap(self._segments)
        except OSError as exc:
            raise DataDirError(self._folder, f"{files.NAME} cannot be written: {exc.strerror}") from exc
        self.drop_others()

    def discard(self) -> None:
        """Close this index, and remove the files of its segments, which no other index uses."""
        self._give_up_merging()
        if self._sealing is not None:
            self._sealing.give_up()
            self._sealing = None
        for segment in self._segments:
            segment.path.unlink(missing_ok=True)
        self._parts, self._segments = (), []

    # sealing and merging

    def _seal(self) -> None:
        """Freeze the new vectors, if any, and start a thread that seals them."""
        if self._sealing is not None or not self.unsealed:
            return
        if not len(self._frozen):
            self._frozen, self._new = self._new, NewCells(self.dimension)
        frozen = self._frozen
        self._sealing = self._writing([frozen], lambda: [NewLists(frozen)])

    def _merge(self) -> None:
        """Start a thread that merges segments, if a merge is needed."""
        if self._merging is not None or self._stuck:
            return
        sizes = [(segment.layout.rows, segment.gone) for segment in self._segments]
        if chosen := to_merge(sizes, self.enough // 2):
            sources = [self._segments[place] for place in chosen]
            self._merging = self._writing(sources, lambda: [SegmentRows(source) for source in sources])

    def _writing(self, sources: Sequence[Cells], lists: Callable[[], Sequence[Lists]]) -> Writing:
        with suppress(OSError):  # if it fails, the writing thread reports it
            (self._folder / files.FOLDER).mkdir(exist_ok=True)
        number = secrets.randbits(63)
        path = self._folder / files.FOLDER / name_of(number)
        return Writing(path, number, self.dimension, sources, lists, self._guard)

    def _take_over(self) -> None:
        """Replace the sources of all finished segments by these segments."""
        for job in (self._sealing, self._merging):
            if job is not None and job.done:
                self._finish(job)

    def _finish(self, job: Writing | None) -> None:
        """Wait until the job has written its segment, and replace the job's sources by the segment."""
        if job is None:
            return
        job.wait()
        if job is self._sealing:
            self._sealing = None
        else:
            self._merging = None
        try:
            if job.error is not None:
                raise job.error
            fresh = self._sealed(job)
            kept = [segment for segment in self._segments if segment not in job.sources]
            self._swap([*kept, *fresh])
        except (OSError, DataDirError) as exc:
            job.discard()
            self._stuck = True
            if not self._told:
                log.warning("%s: segments cannot be written; a new attempt follows each minute: %s", self._name, exc)
            self._told = True
            return
        self._told = False
        for source in job.sources:
            if isinstance(source, Segment):
                source.path.unlink(missing_ok=True)
            else:
                self._frozen = NewCells(self.dimension)
        self._segments = [*kept, *fresh]
        if self._sealing is None and self._merging is None:
            self._went.clear()
        self._set_parts()

    def _sealed(self, job: Writing) -> list[Segment]:
        """Return a list with the written segment; an empty list if there was no row to write.

        Vectors that were removed while the segment was written are removed from it.
        """
        if not job.rows:
            job.discard()
            return []
        segment = Segment.opened(job.path, self.dimension)
        if segment is None:
            raise DataDirError(job.path, "it does not hold the written data; check the disk")
        if self._went:
            segment.wipe(np.unique(np.concatenate(self._went)))
        return [segment]

    def _swap(self, segments: Sequence[Segment]) -> None:
        """Write a manifest that names these segments. Raises OSError and `DataDirError`."""
        if self._stamp is None:
            return
        if segments:
            synced(self._folder / files.FOLDER)
        stamp = self._stamp(self._manifest.stamp if self._manifest is not None else None)
        manifest = Manifest(stamp.shard, stamp.generation, self.dimension, [one.named for one in segments])
        write_manifest(self._folder, manifest)
        self._manifest = manifest

    def _give_up_merging(self) -> None:
        if self._merging is not None:
            self._merging.give_up()
            self._merging = None
        if self._sealing is None:
            self._went.clear()
