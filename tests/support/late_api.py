"""A worker's API that is put together for its first request: most workers of tests are asked nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from schemas.settings import Settings
from streams import app
from streams.admission.admission import Admission
from streams.api.application import build
from streams.api.forwarding import Forwarding
from streams.app import Siltstone
from streams.service import MemoryService


def api_of(settings: Settings) -> FastAPI:
    """The API of a worker that does not run."""
    worker = Siltstone(settings)
    return build(worker.service, worker.forwarding)


class LateApi:
    """What `build` makes of a worker's service, as soon as it is asked for something."""

    def __init__(self, service: MemoryService, forwarding: Forwarding, admission: Admission | None = None) -> None:
        self._service, self._forwarding, self._admission = service, forwarding, admission
        self._built: FastAPI | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":  # our API does nothing when it starts and stops
            while True:
                await send({"type": f"{(kind := (await receive())['type'])}.complete"})
                if kind == "lifespan.shutdown":
                    return
        if self._built is None:
            self._built = build(self._service, self._forwarding, self._admission)
        await self._built(scope, receive, send)


@contextlib.contextmanager
def late() -> Iterator[None]:
    """Within the block, that of each worker of this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "build", LateApi)
        yield
