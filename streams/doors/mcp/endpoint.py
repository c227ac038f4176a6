"""The MCP endpoint `/mcp` of the API. It uses streamable HTTP without sessions, and answers with JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from schemas.topic_specs import MAX_RECORD_BYTES
from streams.doors.mcp.caller import CALLER, Caller
from streams.doors.mcp.own_api import OwnApi
from streams.doors.mcp.resources import Profiles
from streams.doors.mcp.server import MemoryServer
from streams.doors.mcp.tools import Tools

#: The host check of the MCP SDK is disabled, because it accepts only loopback names. `Hosts` has already checked the
#: host.
_LOOKED_AT_ALREADY: Final = TransportSecuritySettings(enable_dns_rebinding_protection=False)


class McpEndpoint:
    """The ASGI application of `/mcp`. It can answer requests only while the context manager `lifespan` is active.

    Workers keep no sessions, so the next call of a client may go to another worker.
    """

    path: Final = "/mcp"
    methods: Final = ("GET", "POST", "DELETE")

    def __init__(self) -> None:
        self._serving: ASGIApp | None = None

    @asynccontextmanager
    async def lifespan(self, api: FastAPI) -> AsyncIterator[None]:
        async with OwnApi(api) as own:
            server = MemoryServer(Tools(own).all(), Profiles(own))
            server.streamable_http_app(
                stateless_http=True,
                json_response=True,
                max_request_body_size=MAX_RECORD_BYTES,
                transport_security=_LOOKED_AT_ALREADY,
            )
            async with server.session_manager.run():
                self._serving = server.session_manager.handle_request
                try:
                    yield
                finally:
                    self._serving = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":  # there are no streams for GET, and no sessions for DELETE
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        assert self._serving is not None, "the API's lifespan was not entered"
        CALLER.set(Caller.of(Request(scope)))
        await self._serving(scope, receive, send)
