"""Moving house: what is held of a user is exported by one Siltstone and imported by another, by commands alone."""

from __future__ import annotations

import asyncio
import os
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from schemas.memories import Memory
from schemas.settings import Settings
from schemas.times import iso, now_ms
from streams.app import Siltstone
from streams.doors.cli import running
from tables.memories.shard import Shard
from tests.support.api import api
from tests.support.making import START
from tests.support.quick_commands import siltstone
from tests.support.waiting import until_it_is

HOUR_MS = 3_600_000


def other(settings: Settings, folder: Path) -> Settings:
    """Another house: topics, group and data directory of its own."""
    name = uuid.uuid4().hex[:8]
    kafka = settings.kafka.model_copy(update={"topic_prefix": f"{name}.", "group_id": name})
    return settings.model_copy(update={"data_dir": folder, "kafka": kafka})


async def command(worker: Siltstone, *words: str) -> Any:
    kafka = worker.settings.kafka
    names = {"SILTSTONE_KAFKA__TOPIC_PREFIX": kafka.topic_prefix, "COLUMNS": "120"}
    servers = () if words[0] == "export" else ("--bootstrap-servers", kafka.bootstrap_servers)
    done = await siltstone(*words, "--url", f"http://127.0.0.1:{worker.api.port}", *servers, **names)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def held(worker: Siltstone, user: str = "ann") -> list[Memory]:
    return list(await worker.shards.call(worker.context.partition_of(user), Shard.memories_of, user))


async def archived(worker: Siltstone, user: str = "ann") -> list[Memory]:
    found = await worker.shards.call(worker.context.partition_of(user), lambda shard: shard.archive.listed(user))
    return [one.memory for one in found]


def as_moved(memories: Sequence[Memory]) -> list[Memory]:
    """Without what an export does not hold: numbers of rows and of accesses, and how states changed."""
    return [
        replace(one, seq=0, access_count=0, meta={k: v for k, v in one.meta.items() if k != "transitions"})
        for one in memories
    ]


async def furnished(http: httpx.AsyncClient) -> None:
    """Exchanges of two sessions, one promoted; memories pinned, edited, superseded, linked, archived; a note."""

    async def post(path: str, body: Any, method: str = "POST") -> dict[str, Any]:
        answer = await http.request(method, path, json=body, params={"wait": "applied", "user_id": "ann"})
        assert answer.status_code == 202, answer.text
        found: dict[str, Any] = answer.json()
        return found

    began = now_ms() - HOUR_MS  # commands are of now: what was said much earlier would have expired
    messages = [
        {"user_id": "ann", "session_id": session, "message_id": f"{session}-{place}", "role": role, "content": text}
        for session in ("s1", "s2")
        for place, (role, text) in enumerate(
            [("user", "Remember that I am allergic to peanuts."), ("assistant", "I will.")]
            if session == "s1"
            else [("user", "Good morning"), ("assistant", "Good morning!")]
        )
    ]
    for place, message in enumerate(messages):
        more = {"name": "Ann", "emotion": "happy", "metadata": {"mood": "fine"}} if message["role"] == "user" else {}
        await post("/v1/messages", {**message, **more, "timestamp": iso(began + place * 1000)})
    await post("/v1/sessions/s1/end", {"timestamp": iso(began + 60_000)})
    texts = {
        "home": "Ann lives in Oslo",
        "moved": "Ann lives in Bergen since May",
        "job": "Ann is a nurse",
        "old": "Ann had a blue bicycle",
        "pinned": "Ann's locker has the number seven",
    }
    ids = {name: str(uuid.uuid4()) for name in texts}
    for place, (name, text) in enumerate(texts.items()):
        event = {"user_id": "ann", "memory_id": ids[name], "text": text, "timestamp": iso(START + place * 1000)}
        await post("/v1/memories", {**event, "importance": 71 + place, "topic": name, "metadata": {"tags": [name]}})
    await post(f"/v1/memories/{ids['job']}", {"user_id": "ann", "text": "Ann is a head nurse"}, "PATCH")
    await post(f"/v1/memories/{ids['pinned']}/pin", None, "PUT")
    await post(f"/v1/memories/{ids['home']}/supersede", {"user_id": "ann", "by": ids["moved"]})
    await post("/v1/links", {"user_id": "ann", "source_id": ids["job"], "target_id": ids["moved"], "weight": 0.5})
    await post("/v1/archive", {"user_id": "ann", "memory_id": ids["old"]})
    item = {"user_id": "ann", "kind": "item", "memory_id": str(uuid.uuid4()), "text": "Her colour is red"}
    await post("/v1/memories", {**item, "timestamp": iso(began)})
    note = {"user_id": "ann", "session_id": "s2", "text": "She waits for a parcel", "kind": "short_term"}
    await post("/v1/memories", {**note, "ttl_seconds": 7200, "timestamp": iso(began)})


@pytest.mark.slow
async def test_what_is_exported_is_the_same_in_another_siltstone(settings: Settings, tmp_path: Path) -> None:
    """Memories with ids, text, importance, metadata and times; the archive; links; windows; twice it is the same."""
    file = tmp_path / "ann.jsonl"
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        await furnished(http)

        async def promoted() -> bool:
            return len(await held(worker)) == 6

        await until_it_is(promoted, alive=worker)
        told = orjson.loads(await command(worker, "export", "--user", "ann", "--output", str(file), "--json"))
        assert told == {"memories": 8, "messages": 4, "output": str(file)}
        plain = await command(worker, "export", "--user", "ann")
        before, aside, spoken = await held(worker), await archived(worker), await window(http)
        linked = await links(worker)
        nobody = await command(worker, "export", "--user", "nobody")
        assert (plain.encode(), nobody) == (file.read_bytes(), "")
    assert [one.text for one in before if one.pinned] == [
        "Ann's locker has the number seven",
        "Ann: Remember that I am allergic to peanuts.\nI will.",
        "Her colour is red",
    ]

    async with running.started(other(settings, tmp_path / "other")) as worker, api(worker) as http:
        await running.until_ready(worker)
        for _ in range(2):
            told = orjson.loads(await command(worker, "import", "jsonl", str(file), "--wait", "--json"))
            assert (told["format"], told["produced"], told["memories"], told["bad"]) == ("siltstone", 12, 8, 0)
            assert as_moved(await held(worker)) == as_moved(before)
            assert as_moved(await archived(worker)) == as_moved(aside)
            assert await window(http) == spoken
            assert await links(worker) == linked
        again = await command(worker, "export", "--user", "ann")
        assert [orjson.loads(line) for line in again.splitlines()] == [
            orjson.loads(line) for line in plain.splitlines()
        ]
        found = await http.post(
            "/v1/search", json={"user_id": "ann", "query": "Bergen since May", "include_all": True}
        )
        assert found.json()["results"][0]["memory"] == "Ann lives in Bergen since May"


async def window(http: httpx.AsyncClient) -> list[Any]:
    """The messages and notes of both sessions, in their order."""
    found = []
    for session in ("s1", "s2"):
        of = {"user_id": "ann"}
        shown = (await http.get(f"/v1/sessions/{session}/exchanges", params=of)).json()["exchanges"]
        notes = (await http.get(f"/v1/sessions/{session}/memories", params=of)).json()["memories"]
        found.append(([one["messages"] for one in shown], notes))
    return found


async def links(worker: Siltstone) -> list[Any]:
    return list(
        await worker.shards.call(worker.context.partition_of("ann"), lambda shard: shard.links.of_user("ann"))
    )


async def test_a_worker_that_is_not_there_leaves_no_file(tmp_path: Path) -> None:
    folder = await asyncio.to_thread(tempfile.mkdtemp, dir=tmp_path)
    file = Path(folder) / "ann.jsonl"
    for words in ((), ("--output", str(file))):
        done = await siltstone("export", "--user", "ann", "--url", "http://127.0.0.1:9", *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert "no worker answers" in done.stderr
        assert "Traceback" not in done.stderr
    assert await asyncio.to_thread(os.listdir, folder) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("export",), "Missing option '--user'"),
        (("export", "--user", "ann", "--json"), "--json describes the written file: name one with --output"),
        (("import", "memo", "x"), "'memo' is not one of 'mem0', 'openmemory', 'jsonl'"),
        (("import", "mem0", "nowhere.json"), "does not exist"),
        (("import", "openai", "chats.json"), "no user is named in OpenAI-style messages: pass --user"),
    ],
)
async def test_wrong_usage_is_said_in_one_line(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    (tmp_path / "chats.json").write_text('[{"role": "user", "content": "hi"}]')
    done = await siltstone(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr


async def test_a_file_that_cannot_be_written_is_named(worker: Siltstone, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{worker.api.port}"
    done = await siltstone("export", "--user", "ann", "--url", url, "--output", str(tmp_path / "no" / "ann.jsonl"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "ann.jsonl cannot be written: No such file or directory" in done.stderr


async def test_what_has_expired_is_in_no_export(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """Nor on the user's own page: a minute may pass until it is removed."""
    item = {"user_id": "ann", "kind": "item", "text": "it was here", "ttl_seconds": 1}
    for when, text in ((now_ms() - 3_600_000, "it was here"), (now_ms() + 3_600_000, "it is here")):
        body = {**item, "text": text, "memory_id": str(uuid.uuid4()), "timestamp": iso(when)}
        (await http.post("/v1/memories", params={"wait": "applied"}, json=body)).raise_for_status()
    for path in ("/v1/export", "/ui/me", "/ui/me/export"):
        shown = (await http.get(path, params={"user_id": "ann"})).raise_for_status().text
        assert ("it is here" in shown, "it was here" in shown) == (True, False), path
