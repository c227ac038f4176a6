"""Topics that change while a worker is at work are noticed in seconds, and told in one line."""

from __future__ import annotations

import pytest
from aiokafka.admin import NewPartitions

from schemas.settings import Settings
from schemas.topics import Topics
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import admin_client, ensure_topics
from tests.crash.lives import idle, living, stop
from tests.support.making import line as record
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.workers import WorkerProcess, asked, ours, sources

USER = "u"
LEVELS = (" WARNING ", " ERROR ", " CRITICAL ")


@pytest.fixture
def port() -> int:
    return free_port()


async def say(settings: Settings, messages: range) -> None:
    async with producing(settings.kafka) as producer:
        for i in messages:
            await producer.send(USER.encode(), record(i, USER, ("user", "assistant")[i % 2], i))
        await producer.send(USER.encode(), record(0, USER, "user", messages.stop, type="session_end"))


async def delete(settings: Settings, topic: str) -> None:
    async with admin_client(settings.kafka) as admin:
        await admin.delete_topics([topic])
        while topic in await admin.list_topics():
            pass


async def taken_in(worker: WorkerProcess, messages: int) -> None:
    port = worker.port
    await until(lambda: idle(port) and asked(port, "/v1/stats/states").get("total") == messages // 2, alive=worker)


class Heard:
    """What the processes that were started within the test have said on standard error."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd, self.said = capfd, ""

    def __contains__(self, words: str) -> bool:
        self.said += self._capfd.readouterr().err
        return words in self.said


@pytest.mark.parametrize("topic", ["conversations", "long-term"])
async def test_a_topic_that_is_made_anew_is_started_over(
    settings: Settings, port: int, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was stored stays, what is said to the new one is taken in, nothing of it twice."""
    heard, name = Heard(capfd), settings.kafka.topic_prefix + topic
    with living(settings, port) as worker:
        await until(lambda: asked(port, "/readyz").get("ready"), alive=worker)
        await say(settings, range(8))
        await taken_in(worker, 8)
        await delete(settings, name)
        await ensure_topics(settings.kafka)
        await until(lambda: "recreated" in heard, alive=worker)
        await say(settings, range(100, 104))
        await taken_in(worker, 12)
        assert worker.poll() is None
        stop(worker)
    assert sources(settings) == {f"{USER}-{i}": 1 for i in [*range(8), *range(100, 104)]}
    assert "stopping" in heard
    told = [line for line in ours(heard.said) if any(level in line for level in LEVELS)]
    assert f"topics were deleted and recreated ({name}): the worker starts over with them" in told.pop()
    assert all(f"the broker has lost its topics ({name})" in line for line in told)  # where it saw it gone
    assert len(told) <= 1


async def test_added_partitions_stop_the_worker_with_one_line(
    settings: Settings, port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with living(settings, port) as worker:
        await until(lambda: asked(port, "/readyz").get("ready"), alive=worker)
        topic = Topics.with_prefix(settings.kafka.topic_prefix).conversations
        async with admin_client(settings.kafka) as admin:
            await admin.create_partitions({topic: NewPartitions(6)})
        await until(lambda: worker.poll() is not None)
    assert worker.returncode == 1
    (told,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("siltstone: ")]
    assert told.startswith(f"siltstone: topic {topic} now has 6 partitions instead of 4: ")
