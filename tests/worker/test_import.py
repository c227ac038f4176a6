"""A person's way: chats from elsewhere are ingested, found, pinned and forgotten, by commands alone."""

from __future__ import annotations

import subprocess
from typing import Any

import httpx
import orjson

from schemas.times import iso, now_ms
from streams.app import Siltstone
from streams.telemetry.metrics import labelled
from tables.memories.shard import Shard
from tests.streams.doors.importing.test_records import chatgpt
from tests.support.quick_commands import siltstone
from tests.support.waiting import until_it_is


async def test_chats_from_elsewhere_are_ingested_once_and_kept_in_hand(
    worker: Siltstone, http: httpx.AsyncClient, tmp_path: Any
) -> None:
    """A second time changes nothing; what is old is warned of; ids of tables are what forget and pin take."""
    kafka = worker.settings.kafka
    names = {"SILTSTONE_KAFKA__TOPIC_PREFIX": kafka.topic_prefix, "COLUMNS": "120"}
    url = ("--user", "ann", "--url", f"http://127.0.0.1:{worker.api.port}")

    async def ingest(path: str, *words: str) -> subprocess.CompletedProcess[str]:
        return await siltstone("ingest", path, *words, "--bootstrap-servers", kafka.bootstrap_servers, **names)

    async def told(*words: str, code: int = 0) -> str:
        done = await siltstone(*words, *url, **names)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    async def held() -> list[Any]:
        return list(await worker.shards.call(worker.context.partition_of("ann"), Shard.memories_of, "ann"))

    def counted() -> tuple[int, int]:
        metrics = worker.metrics
        return sum(labelled(metrics.messages).values()), sum(labelled(metrics.duplicates).values())

    async def read(messages: int, again: int) -> None:
        async def so_far() -> bool:
            lag = (await http.get("/v1/stats/pipeline")).json()["lag"]
            return counted() == (messages, again) and not any(lag.values())

        await until_it_is(so_far, alive=worker)

    tree = chatgpt()
    for name, text in (("c", "I live in Oslo and I am allergic to peanuts."), ("g", "My sister is called Ida.")):
        tree["mapping"][name]["message"]["content"]["parts"] = [text]
    export = tmp_path / "conversations.json"
    export.write_bytes(orjson.dumps([tree]))
    nobodys = await ingest(str(export))
    assert (nobodys.returncode, "no user is named in a ChatGPT export: pass --user" in nobodys.stderr) == (2, True)
    first = await ingest(str(export), "--user", "ann", "--json")
    given = orjson.loads(first.stdout)
    assert (first.returncode, given["format"], given["produced"], given["left_out"]) == (0, "chatgpt", 3, 3)
    assert "older than the fresh period" in given["warnings"][0]
    await read(3, again=0)
    before = await held()
    assert {memory.session_id for memory in before} == {"c-1"}
    assert (await ingest(str(export), "--user", "ann")).returncode == 0
    await read(3, again=3)
    assert await held() == before

    dated = tmp_path / "memories.json"
    dated.write_bytes(
        orjson.dumps({"results": [{"memory": "Plays cricket", "user_id": "ann", "created_at": iso(now_ms())}]})
    )
    for _ in range(2):
        kept = await ingest(str(dated))
        assert (kept.returncode, kept.stdout.startswith("memories.json was read as mem0 memories")) == (0, True)

    remembered = orjson.loads(await told("remember", "The spare key lies under the blue stone", "--json"))["id"]
    shown = await told("list")
    assert all(f"{memory.id}"[:8] in shown for memory in await held())
    assert len(await held()) == len(before) + 2
    assert f"pinned {remembered[:8]}" in await told("pin", remembered[:8])
    assert "active, pinned" in await told("list", "--filter", "kind:eq:remember")
    assert f"unpinned {remembered[:8]}" in await told("unpin", remembered)
    found = await told("search", "where is the spare key?")
    assert (remembered[:8] in found, "cricket" in found, "less relevant left out" in found) == (True, False, True)
    assert "cricket" in await told("search", "where is the spare key?", "--min-relevance", "0")
    shown = await told("search", "Am I allergic to peanuts?")
    assert "would have answered better: --include-all shows" in shown, "it was said months ago"
    assert "peanuts" in await told("search", "Am I allergic to peanuts?", "--include-all")
    assert "forgotten" in await told("forget", remembered[:8], "--yes")
    assert "has no memory" in await told("forget", remembered[:8], "--yes", code=1)
    assert "is neither a memory id" in await told("pin", "key", code=2)
