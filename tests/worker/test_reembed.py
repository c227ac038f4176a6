"""Another embedding model for a running worker, and for files: two real models of one service on loopback.

Their vectors have the same size and nothing else in common. A memory's own words as the question have the cosine 1
with it, as long as the two vectors come from one model, and about 0 where they do not.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx
import numpy as np
import orjson
import pytest
from pydantic import SecretStr

from schemas.errors import EmbeddingMismatch
from schemas.events import Remember
from schemas.settings import EmbeddingSettings, Settings
from schemas.topics import key_of, partition_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.models.embedding import calibration
from tables.database.inspection import catalogs
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.shard import Shard
from tests.support.api import api
from tests.support.late_api import api_of
from tests.support.making import START, some_id
from tests.support.openai_server import DIMENSIONS, Answer, OpenAIServer, Received, embeddings, word_vector
from tests.support.quick_commands import siltstone
from tests.support.signals import default_signals
from tests.support.waiting import PATIENCE, until, until_it_is

USERS = tuple(f"user-{number}" for number in range(12))
NOBODY = "http://127.0.0.1:1"


class Service:
    """The models `one`, `two` and `three`. One that is `stuck` answers no more after so many texts.

    What a model is measured with does not count. One that is `away` fails behind so many texts, and is asked again.
    """

    def __init__(self) -> None:
        self.stuck: dict[str, int] = {}
        self.waiting: set[str] = set()
        self.away: dict[str, int] = {}
        self.embedded: dict[str, list[str]] = {"one": [], "two": [], "three": []}
        self._measured = set(calibration.questions() + calibration.documents())

    def answering(self, request: Received) -> Answer:
        model = request.body["model"]
        if model not in self.embedded:
            return Answer(status=404)
        texts = [text for text in request.texts if text not in self._measured]
        if texts and len(self.embedded[model]) >= self.stuck.get(model, 1_000_000):
            self.waiting.add(model)
            return Answer(delay=3600)
        if texts and len(self.embedded[model]) >= self.away.get(model, 1_000_000):
            return Answer(status=503)
        self.embedded[model] += texts
        size = request.body.get("dimensions", DIMENSIONS)
        return Answer(body=embeddings([vector(model, text, size) for text in request.texts]), delay=0.02)


def vector(model: str, text: str, size: int = DIMENSIONS) -> list[float]:
    return word_vector(re.sub("[a-z]+", lambda word: model + word[0], text.lower()), size)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("streams.memory.reembedding.ROWS", 8)
    return Service()


@pytest.fixture
async def server(service: Service) -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(service.answering) as server:
        yield server


def with_service(settings: Settings, base_url: str) -> Settings:
    """A worker's, with the model `one`."""
    embedding = EmbeddingSettings(
        backend="openai", api_key=SecretStr("sk-test"), base_url=base_url, model="one", batch_size=4
    )
    lifecycle = settings.lifecycle.model_copy(update={"clock": "wall"})
    return settings.model_copy(update={"embedding": embedding, "lifecycle": lifecycle})


@pytest.fixture
def one(settings: Settings, server: OpenAIServer) -> Settings:
    return with_service(settings, server.base_url)


def with_model(settings: Settings, name: str) -> Settings:
    return settings.model_copy(update={"embedding": settings.embedding.model_copy(update={"model": name})})


def in_environment(settings: Settings) -> dict[str, str]:
    """What makes a command's settings those of the worker."""
    embedding = settings.embedding
    return {
        "SILTSTONE_EMBEDDING__BACKEND": embedding.backend,
        "SILTSTONE_EMBEDDING__MODEL": embedding.model,
        "SILTSTONE_EMBEDDING__API_KEY": embedding.api_key.get_secret_value(),
        "SILTSTONE_EMBEDDING__BASE_URL": embedding.base_url,
        "SILTSTONE_DATA_DIR": str(settings.data_dir),
    }


@asynccontextmanager
async def working(settings: Settings) -> AsyncIterator[tuple[Siltstone, httpx.AsyncClient]]:
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        async with api(worker) as http:
            yield worker, http


def said(number: int) -> str:
    """Three words that no other number has."""
    letters = "".join(chr(ord("a") + int(digit)) for digit in str(number))
    return " ".join(f"{beginning}{letters}" for beginning in ("brook", "maple", "tower"))


def user_of(number: int) -> str:
    return USERS[number % len(USERS)]


async def remember(worker: Siltstone, *numbers: int) -> None:
    """Have them said; they are memories within moments."""
    for number in numbers:
        event = Remember(event_id=some_id(), user_id=user_of(number), timestamp=START, text=said(number))
        value = event.model_dump_json().encode()
        await (await worker.hot.outbox.send(worker.topics.long_term, value, key=key_of(event.user_id)))


async def held(worker: Siltstone) -> int:
    return sum(await worker.shards.call_each(Shard.count))


async def kept(worker: Siltstone, *numbers: int) -> None:
    before = await held(worker)
    await remember(worker, *numbers)

    async def all_there() -> bool:
        return await held(worker) == before + len(numbers)

    await until_it_is(all_there, alive=worker)


async def finds(http: httpx.AsyncClient, number: int) -> None:
    """The memory is the first answer to its own words, by vectors of one model."""
    asked = {"user_id": user_of(number), "query": said(number), "include_all": True, "explain": True}
    answer = await http.post("/v1/search", json=asked)
    assert answer.status_code == 200, answer.text
    best = answer.json()["results"][0]
    assert best["memory"] == said(number)
    assert best["explain"]["cosine"] == pytest.approx(1, abs=1e-3)


async def state(http: httpx.AsyncClient) -> dict[str, Any]:
    shown: dict[str, Any] = (await http.get("/v1/reembed")).raise_for_status().json()
    return shown


async def until_phase(http: httpx.AsyncClient, *phases: str) -> dict[str, Any]:
    async def there() -> bool:
        return (await state(http))["phase"] in phases

    await until_it_is(there)
    return await state(http)


@pytest.mark.slow
async def test_a_worker_changes_its_model_while_it_is_read_and_written(one: Settings, service: Service) -> None:
    """Each search meanwhile answers rightly; what came meanwhile has the new vectors too; so has the next start."""
    async with working(one) as (worker, http):
        await kept(worker, *range(40))
        numbers, asked, written = count(40), [0], list(range(40))
        over = asyncio.Event()

        async def ask() -> None:
            while not over.is_set():
                await finds(http, written[asked[0] * 7 % len(written)])
                asked[0] += 1

        async def write() -> None:
            while not over.is_set():
                number = next(numbers)
                await kept(worker, number)
                written.append(number)

        async def come_when_asked() -> None:
            """It is away when it has begun; what is asked then is asked of shards that are half embedded."""
            await until(lambda: service.embedded["two"])
            before = asked[0]
            await until(lambda: asked[0] > before + 20 and len(written) > 40)
            service.away.clear()

        service.away["two"] = 8
        busy = [asyncio.create_task(work()) for work in (ask, ask, write, come_when_asked)]
        url = f"http://127.0.0.1:{worker.api.port}"
        result = await siltstone("reembed", "--backend", "openai", "--model", "two", "--url", url, "--json")
        assert result.returncode == 0, result.stderr
        done = orjson.loads(result.stdout)
        at_the_change, then = asked[0], len(service.embedded["one"])
        await until(lambda: asked[0] > at_the_change + 20, alive=worker)
        over.set()
        await asyncio.gather(*busy)
        assert (done["phase"], done["model"], done["dimension"]) == ("done", "two", DIMENSIONS)
        assert (done["switched"], done["shards"], done["done"]) == (*(one.kafka.partitions,) * 2, done["total"])
        assert done["settings"] == {"embedding.backend": "openai", "embedding.model": "two"}
        assert at_the_change > 20
        assert len(written) > 40
        assert len(service.embedded["one"]) == then  # nobody asks it any more
        for number in written:
            await finds(http, number)
        again = await siltstone("reembed", "--backend", "openai", "--model", "two", "--url", url)
        assert (again.returncode, "already" in again.stdout) == (0, True)
        assert "embedding.model: two" in again.stdout
    async with running.started(one) as refused:
        with pytest.raises(EmbeddingMismatch, match=r"come from two .*siltstone reembed"):
            await running.until_ready(refused)
    async with working(with_model(one, "two")) as (worker, http):
        assert await held(worker) == len(written)
        for number in written:
            await finds(http, number)


@pytest.mark.slow
async def test_ctrl_c_stops_it_and_the_next_run_goes_on(one: Settings, service: Service) -> None:
    """Meanwhile the worker is as it was; another model is refused until the half-done one is dropped."""
    async with working(one) as (worker, http):
        await kept(worker, *range(40))
        command = ("reembed", "--backend", "openai", "--model", "two", "--url", f"http://127.0.0.1:{worker.api.port}")
        service.stuck["two"] = 8
        async with interrupted(*command) as interrupt:
            await until(lambda: service.waiting == {"two"})
            code, said_then = await interrupt()
        assert (code, "stopped; finished work is kept" in said_then) == (1, True)
        stopped = await until_phase(http, "stopped")
        assert 0 < stopped["done"] < stopped["total"] == 40
        for number in range(40):
            await finds(http, number)
        service.stuck.clear()
        other = await siltstone(*command[:4], "three", *command[5:])
        assert (other.returncode, "half done" in other.stderr, "--abandon" in other.stderr) == (1, True, True)
        done = await siltstone(*command)
        assert (done.returncode, f"40 memories in {one.kafka.partitions} shards" in done.stdout) == (0, True), (
            done.stderr
        )
        asked = set(service.embedded["two"])
        assert {said(number) for number in range(40)} <= asked
        assert len(service.embedded["two"]) <= 40 + 8  # what was under way is asked for again
        for number in range(40):
            await finds(http, number)


@pytest.mark.slow
async def test_what_is_half_done_is_dropped_when_it_is_asked_for(one: Settings, service: Service) -> None:
    async with working(one) as (worker, http):
        await kept(worker, *range(20))
        service.stuck["two"] = 0
        answer = await http.post("/v1/reembed", json={"backend": "openai", "model": "two"})
        assert (answer.status_code, answer.json()["phase"]) == (202, "loading")
        await until_phase(http, "embedding")
        busy = await http.post("/v1/reembed", json={"backend": "openai", "model": "three"})
        assert (busy.status_code, "openai two is under way" in busy.json()["detail"]) == (409, True)
        dropped = await siltstone("reembed", "--abandon", "--url", f"http://127.0.0.1:{worker.api.port}", "--json")
        assert (dropped.returncode, len(orjson.loads(dropped.stdout)["dropped"]) > 0) == (0, True)
        assert (await state(http))["phase"] == "stopped"
        targets = await worker.shards.call_each(lambda shard: shard.reembedding.target)
        assert set(targets) == {None}
        wide = {"backend": "openai", "model": "three", "dimensions": 48}
        assert (await http.post("/v1/reembed", json=wide)).status_code == 202
        done = await until_phase(http, "done", "failed")
        assert (done["phase"], done["dimension"], done["settings"]["embedding.dimensions"]) == ("done", 48, 48)
        for number in range(20):
            await finds(http, number)


@pytest.mark.own_model
async def test_a_model_that_is_none_changes_nothing(one: Settings) -> None:
    async with working(one) as (worker, http):
        await kept(worker, 1)
        for words, reason in (
            (
                ("--backend", "openai", "--model", "none"),
                r"none at http://127.0.0.1:\d+ does not embed .*NotFoundError",
            ),
            (("--backend", "sentence-transformers", "--model", "/nowhere"), "sentence-transformers"),
        ):
            result = await siltstone("reembed", *words, "--url", f"http://127.0.0.1:{worker.api.port}")
            assert (result.returncode, len(result.stderr.strip().splitlines())) == (1, 1), result.stderr
            assert re.search(reason, result.stderr)
            assert (await state(http))["phase"] == "failed"
        targets = await worker.shards.call_each(lambda shard: shard.reembedding.target)
        assert set(targets) == {None}
        await finds(http, 1)


async def test_a_backend_that_cannot_work_is_refused_at_once(settings: Settings) -> None:
    """A service without a key, and one that is none; no worker has to run for that."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api_of(settings)), base_url=NOBODY) as http:
        answer = await http.post("/v1/reembed", json={"backend": "openai"})
        assert (answer.status_code, "needs a key" in answer.json()["detail"]) == (422, True)
        answer = await http.post("/v1/reembed", json={"backend": "abacus"})
        assert (answer.status_code, "backend: " in answer.json()["detail"]) == (422, True)
        assert (await state(http))["phase"] == "idle"


@pytest.mark.slow
async def test_files_are_changed_where_there_is_no_worker(one: Settings, service: Service) -> None:
    """Interrupted, then gone on with; while a worker has them it is refused. No option: the settings' model."""
    two = in_environment(with_model(one, "two"))
    async with working(one) as (worker, _):
        await kept(worker, *range(30))
        locked = await siltstone("reembed", "--data", str(one.data_dir), **two)
        assert (locked.returncode, len(locked.stderr.strip().splitlines())) == (1, 1)
        assert re.match(r"siltstone: shards 0, .*process \d+ has it open: pass the --url", locked.stderr)
    nowhere = await siltstone("reembed", "--url", NOBODY)
    assert (nowhere.returncode, "no worker answers" in nowhere.stderr) == (1, True)
    service.stuck["two"] = 0
    async with interrupted("reembed", "--url", NOBODY, **two) as interrupt:
        await until(lambda: service.waiting == {"two"})
        code, said_then = await interrupt()
    assert (code, "stopped; finished work is kept" in said_then) == (1, True)
    async with working(one) as (_, http):
        await finds(http, 3)
    service.stuck.clear()
    result = await siltstone("reembed", "--url", NOBODY, "--json", **two)
    assert result.returncode == 0, result.stderr
    done = orjson.loads(result.stdout)
    assert (done["model"], done["total"], done["switched"]) == ("two", 30, one.kafka.partitions)
    assert all(path.with_name("segments.json").exists() for path in catalogs(one.data_dir).values())
    async with working(with_model(one, "two")) as (_, http):
        for number in range(30):
            await finds(http, number)
    nothing = await siltstone("reembed", "--abandon", "--data", str(one.data_dir))
    assert (nothing.returncode, nothing.stdout) == (0, "There were no unfinished vectors.\n")


@pytest.mark.slow
async def test_a_change_that_ended_between_two_shards_is_finished_by_the_next_start(one: Settings) -> None:
    """With the new settings: one shard had changed over."""
    async with working(one) as (worker, _):
        await kept(worker, *range(30))
    for partition, path in catalogs(one.data_dir).items():
        catalog = Catalog(path, partition)
        side = catalog.reembedding
        side.begin(VectorModel("two", DIMENSIONS))
        seqs, texts = side.texts(side.missing())
        if texts:
            made = np.array([vector("two", text) for text in texts], np.float32)
            side.put(seqs, made / np.linalg.norm(made, axis=1, keepdims=True))
        if partition == partition_of(USERS[0], one.kafka.partitions):
            assert side.adopt(path.with_name("segments.json"))
        catalog.close()
    async with running.started(one) as refused:
        with pytest.raises(EmbeddingMismatch):
            await running.until_ready(refused)
    async with working(with_model(one, "two")) as (worker, http):
        for number in range(30):
            await finds(http, number)


@asynccontextmanager
async def interrupted(*words: str, **environment: str) -> AsyncIterator[Any]:
    """The command as its own process; what is given interrupts it: its exit code, and what it said on the way."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from streams.doors.cli import main; main()",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
        preexec_fn=default_signals,
    )

    async def interrupt() -> tuple[int | None, str]:
        process.send_signal(signal.SIGINT)
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE)
        return process.returncode, errors.decode()

    try:
        yield interrupt
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
