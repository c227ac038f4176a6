"""Requests that come slowly, or never end, over a real socket: how long they may take, and how large they may be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest
from fastapi import FastAPI, Request

from schemas.settings import HttpSettings
from streams.doors.http.body_limits import Bodies
from streams.doors.http.failures import answer_failures
from streams.doors.http.request_reading import Plain
from streams.doors.server import ApiServer

MOST, SHORT, LONG = 1000, 0.1, 60.0
#: The other end closes within this, or the test has failed.
PATIENCE = 20.0
HEAD = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@asynccontextmanager
async def serving(head_seconds: float = LONG, body_seconds: float = LONG) -> AsyncIterator[tuple[int, list[int]]]:
    """The port of a server with the limits of these tests, and the sizes of the bodies that its route was given."""
    api, given = FastAPI(), list[int]()

    @api.post("/v1/messages")
    async def take(request: Request) -> dict[str, int]:
        given.append(len(await request.body()))
        return {"size": given[-1]}

    @api.get("/v1/context")
    async def think() -> str:
        await asyncio.sleep(3 * head_seconds)
        return "at last"

    api.add_middleware(Plain)
    api.add_middleware(Bodies, most=MOST, seconds=body_seconds)
    answer_failures(api)
    server = ApiServer(HttpSettings(port=0), head_seconds)
    await server.start(api)
    try:
        yield server.port, given
    finally:
        await server.stop()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the next answer."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


async def closed(reader: asyncio.StreamReader) -> bool:
    """Whether nothing more comes, and the other end is closed."""
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE) == b""
    except ConnectionResetError:  # closed with bytes of ours unread
        return True


async def test_a_body_that_says_to_be_too_large_is_refused_before_it_comes() -> None:
    async with serving() as (port, given), connected(port) as (reader, writer):
        writer.write(f"{HEAD}Content-Length: {MOST + 1}\r\n\r\n".encode())
        status, headers, body = await answer_of(reader)
        assert (status, headers["connection"]) == (413, "close")
        assert orjson.loads(body) == {"detail": f"the body is larger than {MOST} bytes"}
        assert await closed(reader)
    assert given == []


async def test_a_body_without_an_end_is_read_up_to_the_limit() -> None:
    """It is sent as long as the other end takes it: that ends soon."""
    async with serving() as (port, given), connected(port) as (reader, writer):
        writer.write(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        writer.write(b"%x\r\n%s\r\n" % (MOST + 1, b" " * (MOST + 1)))
        status, headers, _ = await answer_of(reader)
        assert (status, headers["connection"]) == (413, "close")
        assert await closed(reader)
    assert given == []


async def test_a_body_of_the_largest_size_is_taken_and_the_connection_kept() -> None:
    async with serving() as (port, given), connected(port) as (reader, writer):
        for _ in range(2):
            text = b'"' + b"a" * (MOST - 2) + b'"'
            writer.write(f"{HEAD}Content-Length: {MOST}\r\n\r\n".encode() + text)
            assert (await answer_of(reader))[0] == 200
    assert given == [MOST, MOST]


@pytest.mark.parametrize("framing", ["Content-Length: 10", "Transfer-Encoding: chunked"])
async def test_a_body_that_does_not_come_is_408(framing: str) -> None:
    async with serving(body_seconds=SHORT) as (port, given), connected(port) as (reader, writer):
        writer.write(f"{HEAD}{framing}\r\n\r\n3\r\n".encode())
        status, headers, body = await answer_of(reader)
        assert (status, headers["connection"]) == (408, "close")
        assert orjson.loads(body) == {"detail": f"the body did not arrive within {SHORT:g} seconds"}
        assert await closed(reader)
    assert given == []


@pytest.mark.parametrize("begun", ["", "POST /v1/mess", HEAD])
async def test_a_head_that_does_not_come_closes_the_connection(begun: str) -> None:
    async with serving(head_seconds=SHORT) as (port, given), connected(port) as (reader, writer):
        writer.write(begun.encode())
        assert await closed(reader)
    assert given == []


async def test_a_head_that_comes_byte_by_byte_has_no_more_time() -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        for byte in HEAD * 100:
            writer.write(byte.encode())
            await asyncio.sleep(SHORT / 10)

    async with serving(head_seconds=SHORT) as (port, _), connected(port) as (reader, writer):
        dripping = asyncio.create_task(drip(writer))
        assert await closed(reader)
        dripping.cancel()


@pytest.mark.slow
async def test_a_second_head_has_the_same_time_and_an_answer_any() -> None:
    """What is asked for may take longer than the asking."""
    async with serving(head_seconds=1.0) as (port, _), connected(port) as (reader, writer):
        writer.write(b"GET /v1/context HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await answer_of(reader))[::2] == (200, b'"at last"')
        writer.write(b"GET /v1/con")
        assert await closed(reader)
