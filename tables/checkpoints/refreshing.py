"""Updates a warm copy from one checkpoint generation to another. Only the blocks that differ are downloaded.

This is possible because no process opens the files of a warm copy, so they are exactly as they were restored. New
blocks are first fetched and verified in a folder beside the copy, so that the copy is unchanged if the store fails.
Then the copy is renamed, changed in place, and renamed back. If the process is killed between the two renames, there
is no copy any more, and the next restore removes the remains.
"""

from __future__ import annotations

from pathlib import Path

from schemas.errors import DataDirError
from tables.checkpoints.manifest import Manifest
from tables.checkpoints.restoring import DRAFT_SUFFIX, NEWS_SUFFIX, Place, Progress, fill, remove, sync_all, write
from tables.checkpoints.store import Store
from tables.paths import synced


def present(before: Manifest, manifest: Manifest) -> set[Place]:
    """Return the places in `manifest` whose block does not change.

    In `before`, the file with the same name has the same block at the same offset.
    """
    was = {(name, offset): sha256 for name, offset, sha256 in _blocks(before)}
    numbers = {file.name: number for number, file in enumerate(manifest.files)}
    return {
        Place(numbers[name], offset)
        for name, offset, sha256 in _blocks(manifest)
        if was.get((name, offset)) == sha256
    }


def _blocks(manifest: Manifest) -> list[tuple[str, int, str]]:
    found = []
    for file in manifest.files:
        offset = 0
        for block in file.blocks:
            found.append((file.name, offset, block.sha256))
            offset += block.length
    return found


def refreshed(
    store: Store, packs: str, before: Manifest, manifest: Manifest, folder: Path, progress: Progress
) -> None:
    """Update the files in `folder` from generation `before` to generation `manifest`.

    `packs` is the folder of the packs in the store. Raises `DamagedCheckpoint`, `StoreUnavailable`, `DataDirError`,
    and the errors of `progress`.
    """
    news = folder.with_name(folder.name + NEWS_SUFFIX)
    draft = folder.with_name(folder.name + DRAFT_SUFFIX)
    stays = present(before, manifest)
    try:
        remove(news)
        remove(draft)
        news.mkdir()
        try:
            fill(store, packs, manifest, news, progress, stays)
            folder.rename(draft)
            synced(folder.parent)
            _change(draft, news, before, manifest, stays)
            draft.rename(folder)
            synced(folder.parent)
        finally:
            remove(news)
    except OSError as exc:
        raise DataDirError(folder, exc.strerror or type(exc).__name__) from exc


def _change(draft: Path, news: Path, before: Manifest, manifest: Manifest, stays: set[Place]) -> None:
    wanted = {file.name for file in manifest.files}
    for file in before.files:
        if file.name not in wanted:
            (draft / file.name).unlink()
    changed = []
    for number, file in enumerate(manifest.files):
        path = draft / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        offset = 0
        with (news / file.name).open("rb") as source:
            for block in file.blocks:
                if Place(number, offset) not in stays:
                    source.seek(offset)
                    write(path, memoryview(source.read(block.length)), offset)
                offset += block.length
        with path.open("r+b") as target:
            target.truncate(file.length)
        changed.append(path)
    sync_all(draft, changed)
