"""Which embedding model `auto` stands for: the shards', or the best that is installed."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

import pytest

from schemas.errors import DataDirError
from schemas.settings import EmbeddingSettings, Settings
from streams.models.embedding import choice
from streams.models.embedding.choice import chosen, embedder_of
from streams.models.embedding.embedders import E5Embedder, UseEmbedder
from tables.memories.catalog.catalog import Catalog
from tables.vectors.vector_file import Head, VectorFile
from tests.support.anybody import anybody
from tests.support.stored import as_version_7

AUTO = EmbeddingSettings(backend="auto")
USE, E5 = UseEmbedder.dimension, E5Embedder.dimension


@pytest.fixture(params=[True, False], ids=["with e5", "without e5"])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the packages of `e5` are installed."""
    has_e5: bool = request.param
    monkeypatch.setattr(
        choice, "find_spec", lambda package: object() if has_e5 or package == "sentencepiece" else None
    )
    return has_e5


def shard(data: Path, partition: int, dimension: int, number: int = 1) -> None:
    folder = data / "shards" / str(partition)
    folder.mkdir(parents=True, exist_ok=True)
    VectorFile(folder, Head(uuid.uuid4(), number, dimension)).close()


def test_it_is_the_default() -> None:
    assert EmbeddingSettings() == AUTO


@pytest.mark.parametrize("folders", [(), ("shards",), ("shards/0",)], ids=["none", "empty", "no vectors"])
def test_a_new_store_gets_the_best_that_is_installed(
    tmp_path: Path, installed: bool, folders: tuple[str, ...]
) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "shards" / "notes").mkdir(parents=True, exist_ok=True)
    (tmp_path / "shards" / "notes" / "vectors-1.f32").write_bytes(b"no shard's")
    assert chosen(AUTO, tmp_path).backend == ("e5" if installed else "use")


@pytest.mark.parametrize(("dimension", "kept"), [(USE, "use"), (E5, "e5")])
def test_a_store_keeps_its_model(tmp_path: Path, installed: bool, dimension: int, kept: str) -> None:
    """If that is no longer installed, the worker says so when it loads it."""
    shard(tmp_path, 3, dimension)
    assert chosen(AUTO, tmp_path).backend == kept


def test_most_shards_decide(tmp_path: Path, installed: bool) -> None:
    """They may come from the data directories of several workers."""
    for partition, dimension in enumerate((E5, USE, E5)):
        shard(tmp_path, partition, dimension)
    assert chosen(AUTO, tmp_path).backend == "e5"


def test_vectors_that_are_being_made_for_another_model_do_not_count(tmp_path: Path, installed: bool) -> None:
    shard(tmp_path, 0, USE, number=9)
    shard(tmp_path, 0, E5, number=10)
    assert chosen(AUTO, tmp_path).backend == "use"


@pytest.mark.parametrize(("before", "after", "kept"), [(USE, E5, "e5"), (E5, USE, "use")])
def test_a_change_that_ended_between_two_shards_is_to_be_completed(
    tmp_path: Path, installed: bool, before: int, after: int, kept: str
) -> None:
    """One shard of four has changed over, and the others have their new vectors already."""
    for partition in range(3):
        shard(tmp_path, partition, before)
        shard(tmp_path, partition, after, number=2)
    shard(tmp_path, 3, after, number=2)
    assert chosen(AUTO, tmp_path).backend == kept


@pytest.mark.parametrize(("embedder", "kept"), [(UseEmbedder, "use"), (E5Embedder, "e5")])
def test_shards_of_an_older_version_keep_their_model(
    tmp_path: Path, installed: bool, embedder: type[UseEmbedder] | type[E5Embedder], kept: str
) -> None:
    """Their vectors are in the catalog, until they are opened."""
    folder = tmp_path / "shards" / "0"
    catalog = Catalog(folder / "catalog.duckdb", 0)
    catalog.bind_model(embedder.name, embedder.dimension)
    catalog.close()
    as_version_7(folder)
    assert chosen(AUTO, tmp_path).backend == kept


def test_a_catalog_that_cannot_be_read_does_not_count(tmp_path: Path, installed: bool) -> None:
    folder = tmp_path / "shards" / "0"
    folder.mkdir(parents=True)
    (folder / "catalog.duckdb").write_bytes(b"no database")
    shard(tmp_path, 1, USE)
    assert chosen(AUTO, tmp_path).backend == "use"


@pytest.mark.parametrize("shut", [".", "shards", "shards/0", "shards/0/vectors-1.f32"])
def test_what_may_not_be_read_is_no_new_store(installed: bool, shut: str) -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own may be read by its user alone
        data = Path(folder) / "data"
        shard(data, 0, USE)
        for path in (Path(folder), data, *data.rglob("*")):
            path.chmod(0o755)
        (data / shut).chmod(0)
        with anybody(), pytest.raises(DataDirError, match=r"denied; choose another with --data"):
            chosen(AUTO, data)
        (data / shut).chmod(0o755)


def test_a_damaged_or_empty_file_does_not_count(tmp_path: Path, installed: bool) -> None:
    for partition, content in enumerate((b"", b"SltF32_1", bytes(4096))):
        folder = tmp_path / "shards" / str(partition)
        folder.mkdir(parents=True)
        (folder / "vectors-1.f32").write_bytes(content)
    shard(tmp_path, 7, USE)
    assert chosen(AUTO, tmp_path).backend == "use"


def test_shards_of_a_service_leave_it_open(tmp_path: Path, installed: bool) -> None:
    """The shards then refuse the chosen model, with what to do."""
    shard(tmp_path, 0, 1536)
    assert chosen(AUTO, tmp_path).backend == ("e5" if installed else "use")


@pytest.mark.parametrize("backend", ["use", "e5", "sentence-transformers"])
def test_what_the_settings_name_holds(tmp_path: Path, installed: bool, backend: str) -> None:
    shard(tmp_path, 0, USE)
    settings = Settings.model_validate({"embedding": {"backend": backend}, "data_dir": tmp_path})
    assert embedder_of(settings) == settings.embedding
