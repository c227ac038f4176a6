"""What the owner of a partition is asked is what the worker before it was asked, byte for byte."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, unquote

import pytest
from fastapi import Request

from schemas.errors import ShardNotHere
from streams.doors.http.forwarding import Forwarding
from streams.memory.read_your_writes import ReadYourWrites, asked_by
from tests.support.hostile_ids import HOSTILE
from tests.support.waiting import until


class Owner:
    """A server that keeps each request's target, and says that it is there."""

    def __init__(self) -> None:
        self.targets: list[bytes] = []
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._answer, "127.0.0.1", 0) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.targets.append(head.split(b" ")[1])
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()
        await writer.wait_closed()


class NoLog:
    """These tests do not read the log."""

    async def until_readable(self, topic: str, partition: int, offset: int) -> bool:
        raise AssertionError

    is_written = until_readable


@pytest.fixture
async def owner() -> AsyncIterator[Owner]:
    owner = Owner()
    async with owner.serving():
        yield owner


@pytest.fixture
async def forwarding(owner: Owner) -> AsyncIterator[Forwarding]:
    made = Forwarding(lambda partition: owner.url, lambda: "http://127.0.0.1:9", 1, ReadYourWrites(NoLog()).reserved)
    yield made
    await made.close()


def asked(path: str, query: str = "") -> Request:
    """A request as uvicorn hands it on."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http", "method": "DELETE", "scheme": "http", "server": ("127.0.0.1", 8000), "headers": [],
        "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(),
    }  # fmt: skip
    return Request(scope, receive)


@pytest.mark.parametrize("name", HOSTILE)
async def test_an_id_in_the_address_is_the_same_at_the_owner(name: str, owner: Owner, forwarding: Forwarding) -> None:
    path, query = f"/v2/entities/user/{quote(name, safe='')}/", f"run_id={quote(name, safe='')}&b=%2F+"
    assert (await forwarding.to_owner(asked(path, query), ShardNotHere(0, "moved"))).status_code == 200
    assert (await forwarding.to_owner(asked(path), ShardNotHere(0, "moved"))).status_code == 200
    assert owner.targets == [f"{path}?{query}".encode(), path.encode()]


async def test_any_address_is_the_same_at_the_owner(owner: Owner, forwarding: Forwarding) -> None:
    """Also one that nobody would write: escaped where it need not be, and not where it might."""
    chance = random.Random(35)
    parts = (
        "a",
        "/",
        ".",
        "..",
        "%2e",
        "%2E",
        "%25",
        "%41",
        "%",
        "é".encode().hex(),
        ";",
        ":",
        "@",
        "+",
        "~",
        "[",
        "|",
    )
    paths = ["/v1/" + "".join(chance.choices(parts, k=8)) for _ in range(100)]
    for path in paths:
        assert (await forwarding.to_owner(asked(path), ShardNotHere(0, "moved"))).status_code == 200
    assert [target.decode() for target in owner.targets] == paths


@pytest.mark.parametrize("prefix", ["/siltstone", "/a%2Fb/", "/"])
async def test_an_owner_behind_a_path_is_asked_there(prefix: str, owner: Owner, forwarding: Forwarding) -> None:
    """`http.advertised_url` may lead to a proxy."""
    owner.url += prefix
    assert (
        await forwarding.to_owner(asked("/v1/memories", "user_id=a"), ShardNotHere(0, "moved"))
    ).status_code == 200
    assert owner.targets == [prefix.rstrip("/").encode() + b"/v1/memories?user_id=a"]


async def test_those_who_wait_at_one_worker_keep_nobody_from_the_others(owner: Owner) -> None:
    """One token has so many places, and each worker connections of its own."""
    silent, released = list[bytes](), asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        silent.append(await reader.readuntil(b"\r\n\r\n"))
        await released.wait()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        urls = [f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", owner.url]
        effects = ReadYourWrites(NoLog(), most_of_one=120)
        forwarding = Forwarding(urls.__getitem__, lambda: "http://127.0.0.1:9", 2, effects.reserved)

        async def waits(who: str, partition: int) -> int:
            asked_by.set(who)
            request = asked("/v1/applied")
            request.state.waits = 60.0
            return (await forwarding.to_owner(request, ShardNotHere(partition, "moved"))).status_code

        hostile = [asyncio.create_task(waits("ann", 0)) for _ in range(121)]
        await until(lambda: len(silent) == 120)
        refused, _ = await asyncio.wait(hostile, return_when=asyncio.FIRST_COMPLETED)
        assert [one.result() for one in refused] == [503]
        assert await asyncio.create_task(waits("ann", 1)) == 503, "of the same token none more"
        assert await asyncio.create_task(waits("bob", 1)) == 200
        released.set()
        await asyncio.wait(hostile)
        await forwarding.close()
