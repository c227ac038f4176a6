"""Restores a checkpoint: fetches parts of packs, a few at a time, verifies each block, and writes it to its place."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final, NamedTuple

from schemas.errors import DamagedCheckpoint, DataDirError
from tables.checkpoints.manifest import Block, Manifest
from tables.checkpoints.store import Store
from tables.paths import synced

#: Maximum number of unneeded bytes between two blocks that are fetched in one request.
GAP_BYTES: Final = 1024 * 1024
#: Maximum number of bytes that one request fetches, and maximum number of requests at the same time.
FETCH_BYTES: Final = 8 * 1024 * 1024
FETCHES: Final = 4
DRAFT_SUFFIX: Final = ".restoring"
#: Suffix of the folder for new blocks, beside a warm copy that is updated to another generation.
NEWS_SUFFIX: Final = ".news"

Progress = Callable[[int, int], None]


class Place(NamedTuple):
    """The place of a block: the index of its file in `Manifest.files`, and the offset in this file."""

    file: int
    offset: int


class Fetch(NamedTuple):
    """One request to the store: a range of a pack, the blocks in it, and the places of each block in the files."""

    pack: int
    start: int
    end: int
    blocks: Sequence[tuple[Block, Sequence[Place]]]


def fetches(manifest: Manifest, present: Set[Place] = frozenset()) -> Iterator[Fetch]:
    """Return the requests for the blocks of all files, as few as possible.

    Blocks at places in `present` are not requested.
    """
    places: dict[Block, list[Place]] = {}
    for number, file in enumerate(manifest.files):
        offset = 0
        for block in file.blocks:
            if (place := Place(number, offset)) not in present:
                places.setdefault(block, []).append(place)
            offset += block.length
    blocks = sorted(places, key=lambda block: (block.pack, block.offset))
    group: list[Block] = []
    for block in blocks:
        if group and (
            block.pack != group[0].pack
            or block.offset - (group[-1].offset + group[-1].length) > GAP_BYTES
            or block.offset + block.length - group[0].offset > FETCH_BYTES
        ):
            yield _fetch(group, places)
            group = []
        group.append(block)
    if group:
        yield _fetch(group, places)


def _fetch(group: list[Block], places: dict[Block, list[Place]]) -> Fetch:
    end = group[-1].offset + group[-1].length
    return Fetch(group[0].pack, group[0].offset, end, [(block, places[block]) for block in group])


def restored(store: Store, packs: str, manifest: Manifest, folder: Path, progress: Progress) -> None:
    """Restore all files of a manifest into `folder`, or none. `packs` is the folder of the packs in the store.

    Raises `DamagedCheckpoint`, `StoreUnavailable`, `DataDirError`, and the errors of `progress`.
    """
    draft = folder.with_name(folder.name + DRAFT_SUFFIX)
    try:
        remove(draft)
        remove(folder.with_name(folder.name + NEWS_SUFFIX))
        draft.mkdir(parents=True)
        try:
            fill(store, packs, manifest, draft, progress)
            draft.rename(folder)
            synced(folder.parent)
        except BaseException:
            remove(draft)
            raise
    except OSError as exc:
        raise DataDirError(folder, exc.strerror or type(exc).__name__) from exc


def remove(draft: Path) -> None:
    if draft.exists():
        shutil.rmtree(draft)


def fill(
    store: Store, packs: str, manifest: Manifest, draft: Path, progress: Progress, present: Set[Place] = frozenset()
) -> None:
    """Create the files of a manifest in the folder `draft`, and fetch their blocks into them.

    Blocks at places in `present` are not fetched.
    """
    files = [draft / file.name for file in manifest.files]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
    whole = manifest.whole
    done = whole - sum(
        len(places) * block.length for fetch in fetches(manifest, present) for block, places in fetch.blocks
    )
    progress(done, whole)
    with ThreadPoolExecutor(FETCHES, "checkpoint-fetch") as pool:
        pending: set[Future[int]] = set()
        try:
            for fetch in fetches(manifest, present):
                if len(pending) > FETCHES:
                    ended, pending = wait(pending, return_when=FIRST_COMPLETED)
                    done += sum(future.result() for future in ended)
                    progress(done, whole)
                pending.add(pool.submit(_fetched, store, packs, manifest, fetch, files))
            while pending:
                ended, pending = wait(pending, return_when=FIRST_COMPLETED)
                done += sum(future.result() for future in ended)
                progress(done, whole)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    sync_all(draft, files)


def sync_all(folder: Path, files: Iterable[Path]) -> None:
    """Sync these files and their folders up to `folder`, so they survive a power failure."""
    files = list(files)
    folders = {parent for path in files for parent in path.parents if parent.is_relative_to(folder)}
    for path in [*files, *sorted(folders | {folder})]:
        synced(path)


def _fetched(store: Store, packs: str, manifest: Manifest, fetch: Fetch, files: Sequence[Path]) -> int:
    """Fetch, verify and write the blocks of one request. Return the number of bytes written."""
    pack = manifest.packs[fetch.pack]
    content = store.read_range(f"{packs}/{pack.name}", fetch.start, fetch.end)
    written = 0
    for block, places in fetch.blocks:
        if (wrong := wrong_with(block, fetch, content)) is not None:
            file = manifest.files[places[0].file]
            what = f"{file.name} at byte {places[0].offset}: {wrong}"
            raise DamagedCheckpoint(manifest.facts.partition, manifest.generation, what, pack.name)
        assert content is not None
        bytes_of = content[block.offset - fetch.start :][: block.length]
        for place in places:
            write(files[place.file], bytes_of, place.offset)
            written += block.length
    return written


class Damage(NamedTuple):
    """A block that cannot be restored: the file that it belongs to, its offset there, its pack, and the reason."""

    file: str
    offset: int
    pack: str
    reason: str


def verified(store: Store, packs: str, manifest: Manifest, progress: Progress) -> list[Damage]:
    """Return the blocks of a manifest that are missing or damaged, in the order of the packs.

    Raises `StoreUnavailable`.
    """
    found: list[Damage] = []
    done, whole = 0, manifest.whole
    progress(done, whole)
    for fetch in fetches(manifest):
        pack = manifest.packs[fetch.pack].name
        content = store.read_range(f"{packs}/{pack}", fetch.start, fetch.end)
        for block, places in fetch.blocks:
            wrong = wrong_with(block, fetch, content)
            for place in places:
                if wrong is not None:
                    found.append(Damage(manifest.files[place.file].name, place.offset, pack, wrong))
                done += block.length
        progress(done, whole)
    return found


def wrong_with(block: Block, fetch: Fetch, content: memoryview | None) -> str | None:
    """Return the reason why a fetched block is damaged; None if it is intact."""
    if content is None:
        return "its pack is missing"
    found = content[block.offset - fetch.start :][: block.length]
    if len(found) < block.length:
        return "its pack is too short"
    if hashlib.sha256(found).hexdigest() != block.sha256:
        return "its checksum differs"
    return None


def write(path: Path, content: memoryview, offset: int) -> None:
    """Write bytes at an offset of a file. It is opened each time: a restore has too many files to keep them open."""
    with path.open("r+b", buffering=0) as file:
        while content:
            written = os.pwrite(file.fileno(), content, offset)
            content, offset = content[written:], offset + written
