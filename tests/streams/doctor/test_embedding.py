"""The doctor's check of the embedding model: where a choice comes from, and settings of another backend."""

from __future__ import annotations

from pathlib import Path

from schemas.settings import EmbeddingSettings, Settings
from streams.doctor.embedding import by_auto, fitting, untold
from streams.models.embedding.embedders import UseEmbedder
from streams.models.embedding.embedding import Model
from tables.memories.catalog.catalog import Catalog

USE = Model(UseEmbedder.name, UseEmbedder.dimension)


def told(data_dir: Path, backend: str = "auto") -> str:
    why = by_auto(Settings.load(embedding={"backend": backend}, data_dir=data_dir))
    (finding,) = fitting(USE, 0.2, {}, why)
    return finding.what


def test_a_choice_names_the_data_directory_that_it_is_for(tmp_path: Path) -> None:
    """A running worker may have another one, where the model is another."""
    loaded = "use-multilingual-v3, 512 dimensions, loaded in 0.2 s"
    assert told(tmp_path) == (
        f"{loaded}; chosen by `auto` for a new store: no shard in {tmp_path} has vectors of `use` or `e5`"
    )
    catalog = Catalog(tmp_path / "shards" / "0" / "catalog.duckdb", 0)
    catalog.bind_model(USE.name, USE.dimension)
    catalog.close()
    assert told(tmp_path) == f"{loaded}; chosen by `auto`, because shards in {tmp_path} have it"
    assert told(tmp_path, "use") == loaded


def test_prefixes_are_not_missed_for_a_model_that_is_not_used() -> None:
    settings = EmbeddingSettings(backend="use", model="intfloat/multilingual-e5-small")
    assert untold(settings, USE) == []
