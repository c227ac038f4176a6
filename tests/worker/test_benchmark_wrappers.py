"""A worker answers what other projects' benchmarks ask: in the shape of their harnesses, with invented texts."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.wrappers import agent_memory_benchmark
from benchmarks.wrappers.precision_mem_bench import service
from schemas.settings import MemorySettings, ScoringSettings, Settings
from siltstone_client import Memory
from streams.app import Siltstone

ROOT = Path(__file__).parents[2]
BELIEFS = {
    "b-boat": "boat ship vessel The boat is red and lies in Oslo.",
    "b-bees": "bees hives Keeps nine bees behind the house.",
    "b-tea": "tea drink Prefers green tea without sugar.",
}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Every exchange becomes a memory."""
    memory = MemorySettings(scoring=ScoringSettings(policy="all"))
    return settings.model_copy(update={"memory": memory})


def url_of(worker: Siltstone) -> str:
    return f"http://127.0.0.1:{worker.api.port}"


async def test_precision_mem_bench_adds_searches_and_resets(worker: Siltstone) -> None:
    """Its three requests: the id of a belief comes back, users see their own beliefs, and a reset leaves none."""
    app = service(Memory(url_of(worker)))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://w") as harness,
    ):

        async def searched(query: str, user: str = "test-user", limit: int = 20) -> list[dict[str, Any]]:
            body = {"query": query, "user_id": user, "limit": limit, "scope": "domain:code"}
            answer = (await harness.post("/search", json=body)).raise_for_status().json()
            return [*answer["results"]]

        assert (await harness.delete("/reset")).json() == {"ok": True}
        for belief, text in BELIEFS.items():
            body = {"text": text, "user_id": "test-user", "metadata": {"beliefId": belief, "scope": "domain:code"}}
            assert (await harness.post("/add", json={**body, "aliases": []})).json() == {"ok": True}
        body = {"text": "The boat of another one.", "user_id": "other-user", "metadata": {"beliefId": "b-other"}}
        await harness.post("/add", json=body)

        found = await searched("Which boat lies in Oslo?")
        assert found[0]["id"] == "b-boat"
        assert {one["id"] for one in found} == BELIEFS.keys()
        assert found[0]["memory"] == BELIEFS["b-boat"]
        assert 0 < found[-1]["score"] <= found[0]["score"] <= 1
        assert [one["id"] for one in await searched("Which boat lies in Oslo?", limit=1)] == ["b-boat"]
        assert await searched("   ") == await searched("boat", user="nobody") == await searched("boat", limit=0) == []

        assert (await harness.delete("/reset")).json() == {"ok": True}
        assert await searched("Which boat lies in Oslo?") == []
        await harness.post(
            "/add", json={"text": BELIEFS["b-tea"], "user_id": "test-user", "metadata": {"beliefId": "b-tea"}}
        )
        assert [one["id"] for one in await searched("Which tea?")] == ["b-tea"]


MODULES = {
    "models.py": """
from dataclasses import dataclass


@dataclass
class Document:
    id: str
    content: str
    user_id: str | None = None
    messages: list[dict] | None = None
    timestamp: str | None = None
    context: str | None = None
""",
    "memory/base.py": """
import asyncio
from abc import ABC, abstractmethod


class MemoryProvider(ABC):
    link = None
    concurrency = 1

    def initialize(self):
        ...

    @abstractmethod
    def ingest(self, documents):
        ...

    @abstractmethod
    def retrieve(self, query, k=10, user_id=None, query_timestamp=None):
        ...

    async def async_ingest(self, documents):
        return await asyncio.to_thread(self.ingest, documents)

    async def async_retrieve(self, query, k=10, user_id=None, query_timestamp=None):
        return await asyncio.to_thread(self.retrieve, query, k, user_id, query_timestamp)
""",
    "memory/__init__.py": "REGISTRY = {}",
    "cli.py": """
import sys

from memory_bench.memory import REGISTRY


def app():
    print([*REGISTRY], sys.argv[1:])
""",
}


@pytest.fixture
def memory_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with the parts of the Agent Memory Benchmark that a provider meets."""
    for name, text in MODULES.items():
        file = tmp_path / "src" / "memory_bench" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    yield tmp_path / "src"
    for name in [name for name in sys.modules if name.split(".")[0] == "memory_bench"]:
        del sys.modules[name]


#: In the forms of its LoCoMo, its LongMemEval and its plain documents.
SPOKEN = json.dumps(
    [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a red boat in Oslo."},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "A red boat, how nice!"},
    ]
)
LATER = json.dumps(
    [{"speaker": "Bo", "text": "How is the boat?"}, {"speaker": "Ann", "text": "It leaks at the stern."}]
)
WITH_ROLES = [{"role": "user", "content": "I keep nine bees."}, {"role": "assistant", "content": " "}]


async def test_the_agent_memory_benchmark_ingests_and_retrieves(
    worker: Siltstone, memory_bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents come back by their ids, dated, whatever their age; a later run with the same store asks the same."""
    monkeypatch.setenv("SILTSTONE_URL", url_of(worker))
    agent_memory_benchmark.register()
    document = importlib.import_module("memory_bench.models").Document
    kind = importlib.import_module("memory_bench.memory").REGISTRY["siltstone"]
    provider = kind()
    provider.initialize()
    provider.prepare(tmp_path / "store", unit_ids={"conv-1"})
    await provider.async_ingest(
        [
            document("conv-1_session_1", SPOKEN, "conv-1", timestamp="2019-05-08T13:56:00+00:00"),
            document("conv-1_session_2", LATER, "conv-1", timestamp="2019-06-08T13:56:00+00:00"),
            document("q_1", "unused", "conv-1", messages=WITH_ROLES),
            document("page", "Tea is green.\n" + "It grows in the hills.\n" * 300, "conv-1"),
            document("alone", "The tea of another user.", None),
        ]
    )

    async def found(provider: Any, query: str, user: str | None = "conv-1", k: int = 20) -> list[Any]:
        documents, raw = await provider.async_retrieve(query, k=k, user_id=user, query_timestamp="2019-07-01")
        assert len(raw["results"]) == len(documents)
        return [*documents]

    boats = await found(provider, "Which red boat did Ann buy in Oslo?")
    assert boats[0].id == "conv-1_session_1"
    assert boats[0].content.startswith("[2019-05-08 13:5")
    assert "I bought a red boat in Oslo." in boats[0].content
    assert {one.id for one in boats} == {"conv-1_session_1", "conv-1_session_2", "q_1", "page"}
    assert len(await found(provider, "Which red boat?", k=1)) == 1
    assert [one.id for one in await found(provider, "Which tea?", None)] == ["alone"]
    provider.cleanup()

    again = kind()
    again.prepare(tmp_path / "store", reset=False)
    assert (await found(again, "Which red boat did Ann buy in Oslo?"))[0].id == "conv-1_session_1"
    again.prepare(tmp_path / "other")
    assert await found(again, "Which red boat did Ann buy in Oslo?") == []
    again.cleanup()
    await asyncio.sleep(0)


@pytest.mark.slow
def test_the_command_is_that_of_the_agent_memory_benchmark_with_one_provider_more(memory_bench: Path) -> None:
    program = ROOT / "benchmarks" / "wrappers" / "agent_memory_benchmark.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(memory_bench), str(ROOT / "client")])}
    done = subprocess.run(
        [sys.executable, str(program), "run", "--memory", "siltstone"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("['siltstone'] ['run', '--memory', 'siltstone']\n", "")


def test_a_speaker_is_the_user_in_all_sessions_of_a_user_and_a_blank_turn_is_none(memory_bench: Path) -> None:
    document = importlib.import_module("memory_bench.models").Document
    provider = agent_memory_benchmark.Siltstone()
    first, later, roles = (
        [*provider._messages(document(name, text, "u", messages=messages, timestamp="2019-05-08T13:56:00"))]
        for name, text, messages in (("a", SPOKEN, None), ("b", LATER, None), ("c", "", WITH_ROLES))
    )
    assert [(one["role"], one["name"]) for one in first + later] == [
        ("user", "Ann"),
        ("assistant", "Bo"),
        ("assistant", "Bo"),
        ("user", "Ann"),
    ]
    assert [f"{one['timestamp']:%H:%M:%S}" for one in first] == ["13:56:00", "13:56:30"]
    assert [(one["role"], one["content"], one["message_id"]) for one in roles] == [
        ("user", "I keep nine bees.", "c/0")
    ]
    provider.cleanup()


def test_other_texts_are_remembered_in_parts_that_end_with_lines() -> None:
    parts = [*agent_memory_benchmark.parts_of("one line\n" * 1000)]
    assert "\n".join(parts) == ("one line\n" * 1000).strip()
    assert max(map(len, parts)) <= agent_memory_benchmark.MOST_CHARS
    assert [*map(len, agent_memory_benchmark.parts_of("x" * 9000))] == [4000, 4000, 1000]
    assert [*agent_memory_benchmark.parts_of(" \n ")] == []
    for text in ("[1, 2]", "[no json", '[{"text": "without a speaker"}]', "text"):
        document = type("Document", (), {"content": text, "messages": None})()
        assert agent_memory_benchmark.turns_of(document) == []
