"""The backend `auto`, with the real embedded models: memories keep the model that they have."""

from __future__ import annotations

import httpx
import orjson
import pytest

from schemas.settings import EmbeddingSettings, Settings
from streams.app import Siltstone
from streams.models.embedding.embedders import E5Embedder, UseEmbedder
from tables.database.inspection import catalogs
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.reembedding import VectorModel
from tests.support.openai_server import OpenAIServer
from tests.support.quick_commands import siltstone
from tests.worker.test_reembed import (
    Service,
    in_environment,
    kept,
    said,
    until_phase,
    user_of,
    with_service,
    working,
)

pytestmark = [pytest.mark.own_model, pytest.mark.slow]


def with_backend(settings: Settings, backend: str) -> Settings:
    lifecycle = settings.lifecycle.model_copy(update={"clock": "wall"})
    embedding = EmbeddingSettings.model_validate({"backend": backend})
    return settings.model_copy(update={"embedding": embedding, "lifecycle": lifecycle})


async def model(worker: Siltstone) -> str:
    return (await worker.shards.models.current.model()).name


async def is_found(http: httpx.AsyncClient, number: int) -> None:
    """The memory is the first answer to its own words."""
    asked = {"user_id": user_of(number), "query": said(number), "include_all": True}
    answer = (await http.post("/v1/search", json=asked)).raise_for_status().json()
    assert answer["results"][0]["memory"] == said(number)


async def changed(http: httpx.AsyncClient, backend: str) -> dict[str, object]:
    """The settings to change after the change to another model."""
    (await http.post("/v1/reembed", json={"backend": backend})).raise_for_status()
    told = await until_phase(http, "done", "failed")
    assert (told["phase"], told["backend"]) == ("done", backend)
    settings: dict[str, object] = told["settings"]
    return settings


async def test_a_new_store_has_e5_and_after_a_change_use_without_another_setting(settings: Settings) -> None:
    auto = with_backend(settings, "auto")
    async with working(auto) as (worker, http):
        assert await model(worker) == E5Embedder.name
        await kept(worker, 0, 1)
        await is_found(http, 1)
        assert await changed(http, "use") == {}
    async with working(auto) as (worker, http):
        assert await model(worker) == UseEmbedder.name
        await kept(worker, 2)
        await is_found(http, 1)
        await is_found(http, 2)


async def test_a_store_from_before_keeps_use(settings: Settings) -> None:
    async with working(with_backend(settings, "use")) as (worker, _):
        await kept(worker, 0)
    auto = with_backend(settings, "auto")
    async with working(auto) as (worker, http):
        assert await model(worker) == UseEmbedder.name
        await is_found(http, 0)
        found = await siltstone("doctor", "--json", **in_environment(auto))
        (finding,) = [one for one in orjson.loads(found.stdout)["findings"] if one["check"] == "embedding"]
        assert finding["outcome"] == "ok"
        assert finding["what"].startswith(f"{UseEmbedder.name}, 512 dimensions")
        assert finding["what"].endswith(f"because shards in {auto.data_dir} have it")


async def test_files_change_without_another_setting(settings: Settings) -> None:
    auto = with_backend(settings, "auto")
    async with working(with_backend(settings, "use")) as (worker, _):
        await kept(worker, 0)
    data = str(auto.data_dir)
    same = await siltstone("reembed", "--data", data, **in_environment(auto))
    assert same.stdout == f"The shards already have vectors of {UseEmbedder.name} (512 dimensions).\n"
    other = await siltstone("reembed", "--backend", "e5", "--data", data, **in_environment(auto))
    assert other.stdout.endswith(f"shards now have vectors of {E5Embedder.name} (384 dimensions).\n")
    async with working(auto) as (worker, http):
        assert await model(worker) == E5Embedder.name
        await is_found(http, 0)


async def test_auto_is_the_present_model_also_if_it_is_a_services(settings: Settings) -> None:
    """A command without the worker's settings asks for `auto`."""
    async with (
        OpenAIServer(Service().answering) as server,
        working(with_service(settings, server.base_url)) as (worker, http),
    ):
        await kept(worker, 0)
        (await http.post("/v1/reembed", json={"backend": "auto"})).raise_for_status()
        told = await until_phase(http, "done", "failed")
        assert (told["phase"], told["backend"], told["model"]) == ("done", "openai", "one")
        assert await model(worker) == "one"


async def test_a_change_that_ended_between_two_shards_is_completed_by_the_next_start(settings: Settings) -> None:
    """One shard had changed over to `e5`, the others had their new vectors."""
    auto = with_backend(settings, "auto")
    async with working(with_backend(settings, "use")) as (worker, _):
        await kept(worker, *range(8))
    e5 = E5Embedder()
    for number, (partition, path) in enumerate(catalogs(auto.data_dir).items()):
        catalog = Catalog(path, partition)
        side = catalog.reembedding
        side.begin(VectorModel(e5.name, e5.dimension))
        seqs, texts = side.texts(side.missing())
        if texts:
            side.put(seqs, e5.embed(texts, "document"))
        if not number:
            assert side.adopt(path.with_name("segments.json"))
        catalog.close()
    async with working(auto) as (worker, http):
        assert await model(worker) == e5.name
        for number in range(8):
            await is_found(http, number)
