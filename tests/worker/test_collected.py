"""A process of tests starts hundreds of workers: what one of them held is free for the next."""

from __future__ import annotations

import gc
import weakref

from schemas.settings import Settings
from streams.doors.cli import running
from tests.support.api import api
from tests.support.routes_forgotten import forget_routes


async def test_a_closed_worker_is_garbage(settings: Settings) -> None:
    """After it has answered requests, too."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        async with api(worker) as client:
            assert (await client.get("/readyz")).status_code == 200
        closed = weakref.ref(worker)
    del worker
    forget_routes()
    gc.collect()
    assert closed() is None
