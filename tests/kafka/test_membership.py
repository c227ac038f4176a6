"""`kafka.instance_id`: a worker that comes back in time takes nothing from anybody."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen

from schemas.settings import Settings
from streams.kafka.clients.broker import ensure_topics
from tests.crash.lives import living, stop
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.workers import asked, surely_asked


def named(settings: Settings, name: str, port: int, data: Path) -> AbstractContextManager[Popen[bytes]]:
    kafka = settings.kafka.model_copy(update={"session_timeout_seconds": 45.0})
    of_its_own = settings.model_copy(update={"kafka": kafka, "data_dir": data / name})
    return living(of_its_own, port, environment={"SILTSTONE_KAFKA__INSTANCE_ID": name})


def ready(port: int) -> bool:
    return bool(asked(port, "/readyz").get("ready"))


async def test_a_restart_is_no_rebalance_for_the_others(settings: Settings, tmp_path: Path) -> None:
    """The one that stays is ready all the time, and the one that comes back as well, without a session's time-out."""
    await ensure_topics(settings.kafka)
    one, two = free_port(), free_port()
    unready: list[int] = []
    with named(settings, "one", one, tmp_path):
        with named(settings, "two", two, tmp_path) as leaves:
            await until(lambda: ready(one) and ready(two), alive=leaves)
            stop(leaves)
        looking = asyncio.create_task(look(one, unready))
        with named(settings, "two", two, tmp_path) as back:
            await until(lambda: ready(two), alive=back)
            looking.cancel()
            await asyncio.wait([looking])
            assert looking.cancelled(), "it was not looked at all the time"
            stop(back)
    assert unready == []


async def look(port: int, unready: list[int]) -> None:
    """Note each time that the worker is not ready."""
    while True:
        if not (await asyncio.to_thread(surely_asked, port, "/readyz"))["ready"]:
            unready.append(port)
        await asyncio.sleep(0.02)
