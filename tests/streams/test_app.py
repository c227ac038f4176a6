"""The parts of a worker stop in one order, whatever fails."""

from __future__ import annotations

import logging
import socket
import stat

import pytest

from schemas.errors import SiltstoneError
from schemas.settings import Settings
from streams.app import Siltstone
from streams.doors.cli import running
from tests.support.api import api
from tests.support.untouched import Settings as ProcessSettings


@pytest.mark.slow
async def test_a_part_that_cannot_be_stopped_keeps_no_other_from_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise OSError("the disk is full")

    worker = Siltstone(settings)
    monkeypatch.setattr(worker.summaries, "stop", fail)
    await worker.start()
    await running.until_ready(worker)
    assert worker.shards.partitions()
    with pytest.raises(OSError, match="the disk is full"):
        await worker.stop()
    assert worker.shards.partitions() == []
    with socket.socket() as free:
        free.bind(("127.0.0.1", worker.api.port))


async def test_a_worker_sets_nothing_of_its_process(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Umask, signals and logging are for the program to decide, one that has no logging set up too."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    before = ProcessSettings.now()
    worker = Siltstone(settings)
    await worker.start()
    try:
        async with api(worker) as client:  # which puts the API together
            assert (await client.get("/healthz")).status_code == 200
        assert before.put_back() == []
        assert stat.S_IMODE(settings.data_dir.stat().st_mode) == 0o700
    finally:
        await worker.stop()


async def test_a_worker_that_could_not_start_leaves_nothing(settings: Settings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        http = settings.http.model_copy(update={"port": taken.getsockname()[1]})
        worker = Siltstone(settings.model_copy(update={"http": http}))
        with pytest.raises(SiltstoneError, match="cannot serve HTTP"):
            await worker.start()
    await worker.stop()
    await worker.stop()  # asked again, it changes nothing
