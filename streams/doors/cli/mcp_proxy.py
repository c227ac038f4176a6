"""An MCP server on standard input and output, which forwards each request to a worker's `/mcp`.

The worker keeps no MCP sessions. So each request of the assistant becomes one HTTP request to the worker, and the
worker may restart between two requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Final, Self

import httpx
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    Implementation,
    InitializeResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from schemas.errors import ApiError
from streams.doors.cli.client import no_worker
from streams.doors.http.error_detail import detail_of

_HEADERS: Final = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": LATEST_HANDSHAKE_VERSION,
}
#: Seconds to wait for the worker's answer. A tool itself waits a shorter time for a write or for a shard.
_ANSWER_SECONDS: Final = 60.0


class Worker:
    """An MCP client of the worker at the base URL `url`. Use it as an asynchronous context manager."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url, self._ids = url, count(1)
        self._http = httpx.AsyncClient(headers={**_HEADERS, **headers}, timeout=_ANSWER_SECONDS, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Send an MCP request to the worker, and return the result.

        Raises `NoWorker` if no worker answers, `ApiError` for an HTTP error, and `MCPError` for an MCP error.
        """
        asked = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        try:
            answer = await self._http.post(f"{self._url}/mcp", json=asked)
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise no_worker(self._url, exc) from exc
        if answer.status_code == 404:
            raise ApiError(f"{self._url} serves no MCP: set http.mcp to true there, or pass --url", 404)
        try:
            said = answer.json()
            if "error" in said:
                raise MCPError.from_error_data(ErrorData.model_validate(said["error"]))
            return said["result"]
        except (ValueError, KeyError, TypeError) as exc:
            why = detail_of(answer.content)
            raise ApiError(f"{self._url} answered {answer.status_code}: {why}", answer.status_code) from exc

    async def greeted(self) -> InitializeResult:
        """Send the MCP request `initialize`, and return the worker's name, version and instructions."""
        client = Implementation(name="siltstone-stdio", version="1").model_dump(exclude_none=True)
        greeting = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": client}
        return InitializeResult.model_validate(await self.ask("initialize", greeting))


async def serve(url: str, headers: Mapping[str, str]) -> None:
    """Serve MCP on standard input and output until the input ends.

    Raises `ApiError` if no worker answers at the start, or if the worker refuses the first request.
    """
    async with Worker(url, headers) as worker:
        server = _server(worker, await worker.greeted())
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


def _server(worker: Worker, greeted: InitializeResult) -> Server[Any]:
    async def asked(method: str, params: dict[str, Any]) -> Any:
        try:
            return await worker.ask(method, params)
        except ApiError as exc:
            raise MCPError(INTERNAL_ERROR, str(exc)) from exc

    async def list_tools(_: Any, __: Any) -> ListToolsResult:
        return ListToolsResult.model_validate(await asked("tools/list", {}))

    async def list_resources(_: Any, __: Any) -> ListResourcesResult:
        return ListResourcesResult.model_validate(await asked("resources/list", {}))

    async def list_resource_templates(_: Any, __: Any) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult.model_validate(await asked("resources/templates/list", {}))

    async def read_resource(_: Any, params: ReadResourceRequestParams) -> ReadResourceResult:
        return ReadResourceResult.model_validate(await asked("resources/read", {"uri": params.uri}))

    async def call_tool(_: Any, params: CallToolRequestParams) -> CallToolResult:
        try:
            called = {"name": params.name, "arguments": params.arguments or {}}
            return CallToolResult.model_validate(await worker.ask("tools/call", called))
        except ApiError as exc:
            return CallToolResult(content=[TextContent(type="text", text=str(exc))], is_error=True)

    return Server(
        greeted.server_info.name,
        version=greeted.server_info.version,
        title=greeted.server_info.title,
        instructions=greeted.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_resource_templates,
        on_read_resource=read_resource,
    )
