"""The HTTP server of a worker."""

from __future__ import annotations

import socket

from fastapi import FastAPI

from schemas.settings import HttpSettings
from streams.doors.server import ApiServer


async def test_answers_do_not_wait_until_a_client_has_acknowledged_their_heads() -> None:
    """Connections that are accepted have the option from the socket that listens."""
    server = ApiServer(HttpSettings(port=0))
    await server.start(FastAPI())
    try:
        assert server._listener is not None
        assert server._listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        await server.stop()
