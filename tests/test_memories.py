"""Long-term memories one by one, over HTTP, on the real broker and shards."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from schemas.memories import Memory
from schemas.settings import Settings
from streams.app import Siltstone
from streams.cli import running
from tables.shard import Shard
from tests.making import until_it_is


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[Siltstone]:
    async with running.started(settings) as siltstone:
        await running.until_ready(siltstone)
        yield siltstone


@pytest.fixture
async def http(worker: Siltstone) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{worker.port}", trust_env=False, timeout=20) as client:
        yield client


async def held(worker: Siltstone, user: str) -> tuple[Memory, ...]:
    return await worker.shards.call(worker.partition_of(user), Shard.memories_of, user)


async def remember(worker: Siltstone, http: httpx.AsyncClient, user: str, *texts: str, **fields: Any) -> list[str]:
    """The ids of new memories, in the order of the texts."""
    ids = []
    for text in texts:
        body = {"user_id": user, "text": text, **fields}
        ids.append((await http.post("/v1/memories", json=body)).raise_for_status().json()["event_id"])
        await until_held(worker, user, ids[-1])
    return ids


async def until_held(worker: Siltstone, user: str, memory_id: str, there: bool = True) -> None:
    async def as_wanted() -> bool:
        return (uuid.UUID(memory_id) in {memory.id for memory in await held(worker, user)}) is there

    await until_it_is(as_wanted)


async def test_memories_are_listed_page_by_page_with_filters(worker: Siltstone, http: httpx.AsyncClient) -> None:
    colours = ["red apples", "green tea in Kyoto", "the blue bicycle"]
    ids = await remember(worker, http, "ann", *colours, metadata={"tags": ["colour"]})
    ids += await remember(worker, http, "ann", "a dentist on Friday", importance=75)
    first = (await http.get("/v1/memories", params={"user_id": "ann", "limit": 3})).json()
    rest = (await http.get("/v1/memories", params={"user_id": "ann", "after": first["next"]})).json()
    assert [memory["id"] for memory in first["memories"] + rest["memories"]] == ids
    assert (first["total"], rest["next"]) == (4, None)
    wanted = {"user_id": "ann", "filter": ["tags:contains:colour", "importance:gt:75"]}
    assert [m["memory"] for m in (await http.get("/v1/memories", params=wanted)).json()["memories"]] == colours
    wrong = await http.get("/v1/memories", params={"user_id": "ann", "filter": "colour:is:red"})
    assert (wrong.status_code, "a filter is field:operator:value" in wrong.json()["detail"]) == (422, True)


async def test_what_is_another_users_is_not_there(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """By no path, and for nobody who knows its id."""
    (memory_id,) = await remember(worker, http, "ann", "the key lies under the stone")
    (own,) = await remember(worker, http, "bob", "my own thing")
    for method, path in [
        ("GET", f"/v1/memories/{memory_id}"),
        ("PUT", f"/v1/memories/{memory_id}/pin"),
        ("DELETE", f"/v1/memories/{memory_id}/pin"),
    ]:
        assert (await http.request(method, path, params={"user_id": "bob"})).status_code == 404
    link = {"user_id": "bob", "source_id": own, "target_id": memory_id}
    assert (await http.post("/v1/links", json=link)).status_code == 404
    assert (await http.get("/v1/memories", params={"user_id": "bob"})).json()["total"] == 1
    assert (await http.delete(f"/v1/memories/{memory_id}", params={"user_id": "bob"})).status_code == 202
    await http.delete(f"/v1/memories/{own}", params={"user_id": "bob"})
    await until_held(worker, "bob", own, there=False)
    assert [str(memory.id) for memory in await held(worker, "ann")] == [memory_id]


async def test_a_pinned_memory_is_shown_as_such_and_forgotten_all_the_same(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    (memory_id,) = await remember(worker, http, "ann", "the key lies under the stone")
    shown = (await http.get(f"/v1/memories/{memory_id}", params={"user_id": "ann"})).json()
    assert (shown["memory"], shown["kind"], shown["pinned"], shown["state"]) == (
        "the key lies under the stone",
        "remember",
        False,
        "active",
    )
    await http.put(f"/v1/memories/{memory_id}/pin", params={"user_id": "ann"})

    async def pinned() -> bool:
        return (await held(worker, "ann"))[0].pinned

    await until_it_is(pinned)
    assert (await http.delete(f"/v1/memories/{memory_id}", params={"user_id": "ann"})).status_code == 202
    await until_held(worker, "ann", memory_id, there=False)
    assert (await http.get(f"/v1/memories/{memory_id}", params={"user_id": "ann"})).status_code == 404


async def test_a_user_can_have_everything_forgotten(worker: Siltstone, http: httpx.AsyncClient) -> None:
    *_, last = await remember(worker, http, "ann", "red apples", "green tea in Kyoto")
    assert (await http.delete("/v1/memories", params={"user_id": "ann"})).status_code == 202
    await until_held(worker, "ann", last, there=False)
    assert await held(worker, "ann") == ()
