"""Two of three brokers go: each is told with its address when it goes, and when it is back."""

from __future__ import annotations

import asyncio
import logging
import uuid

import pytest

from schemas.settings import Settings
from streams.doors.cli import running
from tests.kafka.cluster import Cluster
from tests.support.waiting import until


async def test_each_broker_is_told_when_it_goes_and_when_it_is_back(
    three: Cluster, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """One is killed and one is paused; the worker goes on, and takes no broker for away that is there."""
    caplog.set_level(logging.INFO, "streams.kafka.broker_watch")
    name = uuid.uuid4().hex[:8]
    kafka = three.settings(settings.kafka).model_copy(update={"topic_prefix": f"{name}.", "group_id": name})
    killed, paused = three.nodes[0], three.nodes[1]

    def told() -> list[tuple[str, str]]:
        ours = [record for record in caplog.records if record.name == "streams.kafka.broker_watch"]
        words = [(record.levelname, record.getMessage().removeprefix("Kafka broker ")) for record in ours]
        return sorted((level, said.split(" since ")[0].split(", after ")[0]) for level, said in words)

    async with running.started(settings.model_copy(update={"kafka": kafka})) as worker:
        await running.until_ready(worker)
        await until(lambda: len(worker.broker._brokers._watched) == 3, alive=worker)
        gone = [("WARNING", f"127.0.0.1:{node.ports['CLIENT']} has not answered") for node in (killed, paused)]
        killed.kill()
        await until(lambda: told() == gone[:1], alive=worker)
        paused.pause()
        await until(lambda: told() == sorted(gone), alive=worker)
        paused.go_on()
        killed.start()
        await asyncio.to_thread(three.wait_until_up)
        back = [("INFO", f"127.0.0.1:{node.ports['CLIENT']} answers again") for node in (killed, paused)]
        await until(lambda: told() == sorted(back + gone), alive=worker)
