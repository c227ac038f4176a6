"""Where nothing is lost, nothing is told: also on a broker that keeps nothing beside offsets."""

from __future__ import annotations

import pytest

from schemas.settings import Settings
from streams.doors.cli import running
from streams.kafka.bulk import producing
from streams.telemetry.metrics import labelled
from tests.support.making import line
from tests.support.waiting import until

USER = "u"


async def say(settings: Settings, messages: range) -> None:
    async with producing(settings.kafka) as producer:
        for i in messages:
            await producer.send(USER.encode(), line(i, USER, ("user", "assistant")[i % 2], i))


async def read_some(settings: Settings) -> None:
    """A worker reads messages 0 to 3, and is stopped."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await say(settings, range(4))
        await until(lambda: labelled(worker.metrics.messages) == {(): 4}, alive=worker)
        await until(lambda: worker.hot.lag()[worker.topics.conversations] == 0, alive=worker)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "streams.kafka.losses"]


async def test_a_worker_that_comes_back_has_lost_nothing(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Its offsets say that they are its own, also where the last record was no message."""
    await read_some(settings)
    async with producing(settings.kafka) as producer:
        await producer.send(USER.encode(), b"no message")
    for _ in range(2):
        async with running.started(settings) as worker:
            await running.until_ready(worker)
            await until(lambda: worker.hot.lag()[worker.topics.conversations] == 0, alive=worker)
    assert told(caplog) == []
