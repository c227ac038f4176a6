"""One worker a test, with the settings of the test's file, and a client of its API."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from schemas.settings import Settings
from streams.app import Siltstone
from streams.doors.cli import running
from tests.support.api import api


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[Siltstone]:
    async with running.started(settings) as siltstone:
        await running.until_ready(siltstone)
        yield siltstone


@pytest.fixture
async def http(worker: Siltstone) -> AsyncIterator[httpx.AsyncClient]:
    async with api(worker) as client:
        yield client
