"""MCP's own client, of a worker's `/mcp` or of the command that stands before it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent, TextResourceContents

from tests.support.waiting import CLIENT_SECONDS


@asynccontextmanager
async def over_http(
    url: str, token: str = "", *, mode: str = "auto", transport: httpx2.AsyncBaseTransport | None = None
) -> AsyncIterator[Client]:
    """`url` is a worker's; `mode` is `legacy` for the protocol with a handshake."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=CLIENT_SECONDS, trust_env=False, transport=transport) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(url: str, token: str = "") -> AsyncIterator[Client]:
    """By `siltstone mcp`, as an assistant starts it."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-c", "from streams.doors.cli import main; main()", "mcp", "--url", url],
        env={**os.environ, "SILTSTONE_TOKEN": token},
    )
    async with Client(command) as client:
        yield client


async def told(client: Client, tool: str, /, **arguments: Any) -> str:
    """The text of an answer."""
    return text_of(await client.call_tool(tool, arguments))


async def refused(client: Client, tool: str, /, **arguments: Any) -> str:
    """The text of a refusal, which is one line."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    line = text_of(answer)
    assert line.count("\n") == 0
    return line


async def answered(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """The structured content."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, text_of(answer)
    content: dict[str, Any] = answer.structured_content or {}
    return content


async def read(client: Client, uri: str) -> str:
    """The text of a resource."""
    (shown,) = (await client.read_resource(uri)).contents
    assert isinstance(shown, TextResourceContents)
    assert (shown.uri, shown.mime_type) == (uri, "text/plain")
    return shown.text


def text_of(answer: Any) -> str:
    (block,) = answer.content
    assert isinstance(block, TextContent)
    return block.text
