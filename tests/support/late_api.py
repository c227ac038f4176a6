"""A worker's API that is put together for its first request: most workers of tests are asked nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from schemas.settings import Settings
from streams import app
from streams.access.admission import Admission
from streams.app import Siltstone
from streams.doors.application import build
from streams.doors.http.forwarding import Forwarding
from streams.service import MemoryService


def api_of(settings: Settings) -> FastAPI:
    """The API of a worker that does not run."""
    worker = Siltstone(settings)
    return build(worker.service, worker.forwarding)


def http_of(settings: Settings) -> httpx.AsyncClient:
    """The same, to be asked; to be closed."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(api_of(settings)), base_url="http://127.0.0.1:8000")


class LateApi:
    """What `build` makes of a worker's service, as soon as it is asked for something."""

    def __init__(self, service: MemoryService, forwarding: Forwarding, admission: Admission | None = None) -> None:
        self._service, self._forwarding, self._admission = service, forwarding, admission
        self._live: asyncio.Task[None] | None = None
        self._built, self._over = asyncio.Future[FastAPI](), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while True:
                if (kind := (await receive())["type"]) == "lifespan.shutdown":
                    await self._end()
                await send({"type": f"{kind}.complete"})
                if kind == "lifespan.shutdown":
                    return
        if self._live is None:
            self._live = asyncio.create_task(self._live_through())
        await (await asyncio.shield(self._built))(scope, receive, send)

    async def _live_through(self) -> None:
        """What an API begins when it starts, the task ends that has begun it."""
        try:
            api = build(self._service, self._forwarding, self._admission)
        except Exception as exc:
            self._built.set_exception(exc)
            return
        async with api.router.lifespan_context(api):
            self._built.set_result(api)
            await self._over.wait()

    async def _end(self) -> None:
        self._over.set()
        if self._live is not None:
            await self._live


@contextlib.contextmanager
def late() -> Iterator[None]:
    """Within the block, that of each worker of this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "build", LateApi)
        yield
