"""Changes the embedding model of the shards in a data directory, for `siltstone reembed` without a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from schemas.errors import SiltstoneError
from schemas.settings import EmbeddingSettings
from streams.doors.cli.shard_files import RowProgress, RowsBar, ShardFiles, shard_files
from streams.memory.reembedding import Phase, embed_missing, to_set
from streams.models.embedding.embedding import Embedding
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.reembedding import Reembedding, VectorModel
from tables.offline.rebuilding import rebuild_index
from tables.vectors import manifest

T = TypeVar("T")


async def reembed_files(data: Path, wanted: EmbeddingSettings, before: EmbeddingSettings) -> dict[str, Any]:
    """Embed all memories with the model `wanted`, and switch the shards to this model. `before` has the old settings.

    Returns the same values as a worker's `GET /v1/reembed` at the end of a re-embedding. After an interruption, each
    shard has either the old or the new model, and the next call continues the work. Raises `SiltstoneError` if
    another process has a shard open.
    """
    files = _all_free(data)
    embedding = Embedding(wanted)
    embedding.start()
    try:
        loaded = await embedding.model()
        target = VectorModel(loaded.name, loaded.dimension)
        changing = _to_change(files, target)
        with RowsBar() as bar:
            rows = 0
            for partition in changing:
                with _opened(files, partition) as catalog:
                    catalog.reembedding.begin(target)
                    await _embed(catalog.reembedding, embedding, bar.of(f"shard {partition}: embedding"))
            for partition in changing:
                with _opened(files, partition) as catalog:
                    await _embed(catalog.reembedding, embedding, bar.of(f"shard {partition}: switching"))
                    rows += catalog.reembedding.rows()
                    adopted = catalog.reembedding.adopt(files.paths[partition].with_name(manifest.NAME))
                    assert adopted, "no other process has it open"
            for partition in changing:
                rebuild_index(partition, files.paths[partition], bar.of(f"shard {partition}: index"))
    finally:
        await embedding.stop()
    return {
        "phase": Phase.DONE,
        "backend": wanted.backend,
        "model": target.name,
        "dimension": target.dimension,
        "done": rows,
        "total": rows,
        "switched": len(changing),
        "shards": len(files.free),
        "settings": to_set(wanted, before),
    }


def abandon_files(data: Path) -> list[int]:
    """Drop the new vectors of an unfinished re-embedding. Return the partitions whose shards had new vectors."""
    files = _all_free(data)
    dropped = []
    for partition in sorted(files.free):
        with _opened(files, partition) as catalog:
            if catalog.reembedding.abandon():
                dropped.append(partition)
    return dropped


def _all_free(data: Path) -> ShardFiles:
    files = shard_files(data)
    if files.held:
        raise SiltstoneError(f"{files.holders}: pass the --url of the worker that has it open, or stop it")
    return files


def _to_change(files: ShardFiles, target: VectorModel) -> list[int]:
    """Return the partitions of the shards whose vectors are from another model than `target`.

    Raises `ShardError` if a shard has an unfinished re-embedding with yet another model.
    """
    held = {p: (found.model, found.dimension) for p, found in sorted(files.free.items()) if found.model}
    for partition in held:
        with _opened(files, partition) as catalog:
            catalog.reembedding.refuse_other(target)
    return [partition for partition, model in held.items() if model != target]


@contextmanager
def _opened(files: ShardFiles, partition: int) -> Iterator[Catalog]:
    catalog = Catalog(files.paths[partition], partition)
    try:
        yield catalog
    finally:
        catalog.close()


async def _embed(side: Reembedding, embedding: Embedding, tell: RowProgress) -> None:
    async def ask(method: Callable[[Reembedding], T]) -> T:
        return method(side)

    await embed_missing(ask, embedding, lambda rows, missing: tell(rows - missing, rows, embedding.trouble))
