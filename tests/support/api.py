"""A worker, asked over HTTP."""

from __future__ import annotations

import httpx

from streams.app import Siltstone
from tests.support.waiting import CLIENT_SECONDS


def api(worker: Siltstone) -> httpx.AsyncClient:
    """A client of the worker's own API, to be closed."""
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{worker.api.port}", trust_env=False, timeout=CLIENT_SECONDS)
