"""A worker that takes messages in and cannot commit says so, with the reason; its lag is what is not committed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from aiokafka.errors import NotEnoughReplicasError

from schemas.settings import Settings
from schemas.topics import Headers
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.bulk import producing
from streams.kafka.commit.sends import Producer
from streams.telemetry.metrics import labelled
from tests.support.making import line
from tests.support.waiting import CLIENT_SECONDS, until

USER = "u"


class Refusing:
    """The worker's producer, whose broker takes nothing of some topics: it refuses it, or never answers."""

    def __init__(self, worker: Siltstone, refuses: Callable[[str], BaseException | None]) -> None:
        assert worker.hot.outbox._producer is not None
        self._producer: Producer = worker.hot.outbox._producer
        self.refuses, self.create_batch = refuses, self._producer.create_batch
        worker.hot.outbox.connect(self)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int | None = None,
        *,
        headers: Headers,
    ) -> asyncio.Future[Any]:
        if error := self.refuses(topic):
            return self._refused(error)
        return await self._producer.send(topic, value, key, partition, timestamp_ms, headers=headers)

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> asyncio.Future[Any]:
        if error := self.refuses(topic):
            return self._refused(error)
        return await self._producer.send_batch(batch, topic, partition=partition)

    def _refused(self, error: BaseException) -> asyncio.Future[Any]:
        refused: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if not isinstance(error, Silent):
            refused.set_exception(error)
            refused.exception()
        return refused


class Silent(Exception):
    """No answer at all."""


#: Longer than any commit of these tests takes.
STALL_SECONDS = 600.0


@pytest.fixture
def stalling(settings: Settings) -> Settings:
    return settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"stall_seconds": STALL_SECONDS})})


def let_pass(worker: Siltstone, seconds: float) -> None:
    """The attempts to commit see so much time gone by at once; nothing else does."""
    worker.hot.attempts._monotonic = lambda: time.monotonic() + seconds


def reason_of(worker: Siltstone) -> str:
    """Why the first attempt to commit has not succeeded; an attempt that has just begun has another reason."""
    failing = worker.hot.not_committing()
    return failing.reason if failing else ""


async def readyz(worker: Siltstone) -> tuple[int, list[str]]:
    async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as client:
        answer = await client.get(f"http://127.0.0.1:{worker.api.port}/readyz")
    return answer.status_code, answer.json()["waiting_for"]


async def say(worker: Siltstone, count: int) -> None:
    async with producing(worker.settings.kafka) as producer:
        for i in range(count):
            await producer.send(USER.encode(), line(i, USER, ("user", "assistant")[i % 2], i))


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (NotEnoughReplicasError(), "NotEnoughReplicasError"),
        (Silent(), "exchanges-changelog has not accepted the due records"),
    ],
)
async def test_what_cannot_be_committed_is_lag_and_makes_the_worker_unready(
    stalling: Settings, caplog: pytest.LogCaptureFixture, error: BaseException, why: str
) -> None:
    """Four messages are in their window, their changelog takes no row; as soon as it does, all is well again."""
    caplog.set_level(logging.INFO, "streams.kafka.stalls")
    async with running.started(stalling) as worker:
        await running.until_ready(worker)
        producer = Refusing(worker, lambda topic: error if topic.endswith("exchanges-changelog") else None)
        await say(worker, 4)
        await until(lambda: labelled(worker.metrics.messages) == {(): 4}, alive=worker)
        await until(lambda: why in reason_of(worker), alive=worker)
        assert worker.health.ready
        let_pass(worker, STALL_SECONDS + 1)
        await until(lambda: not worker.health.ready, alive=worker)
        status, (reason,) = await readyz(worker)
        assert (status, why in reason) == (503, True)
        assert reason.startswith("nothing could be committed for ")
        assert worker.hot.lag()[worker.topics.conversations] == 4
        await until(
            lambda: [r.levelname for r in caplog.records if r.name == "streams.kafka.stalls"] == ["ERROR"],
            alive=worker,
        )

        producer.refuses = lambda topic: None
        if not isinstance(error, Silent):  # aiokafka answers at last, or the worker is restarted
            await until(lambda: worker.health.ready, alive=worker)
            await until(lambda: worker.hot.lag()[worker.topics.conversations] == 0, alive=worker)
            await until(
                lambda: [r.levelname for r in caplog.records if r.name == "streams.kafka.stalls"][1:] == ["INFO"],
                alive=worker,
            )


async def test_a_dead_letter_topic_that_takes_nothing_is_named(
    stalling: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """What holds up everybody's commits is in the health: which topic, and what the broker says of it."""
    async with running.started(stalling) as worker:
        await running.until_ready(worker)
        topic = worker.topics.dead_letters
        refusing = Refusing(worker, lambda name: NotEnoughReplicasError() if name == topic else None)
        async with producing(stalling.kafka) as producer:
            await producer.send(USER.encode(), b"no message")
        await until(lambda: "NotEnoughReplicasError" in reason_of(worker), alive=worker)
        let_pass(worker, STALL_SECONDS + 1)
        await until(lambda: not worker.health.ready, alive=worker)
        _, (reason,) = await readyz(worker)
        assert f"{topic} does not accept the due records (NotEnoughReplicasError" in reason
        refusing.refuses = lambda name: None
        await until(lambda: worker.health.ready, alive=worker)


async def test_a_moment_without_commits_is_no_matter(settings: Settings) -> None:
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        Refusing(worker, lambda topic: NotEnoughReplicasError() if topic.endswith("changelog") else None)
        await say(worker, 2)
        await until(lambda: worker.hot.outbox.failure, alive=worker)
        assert worker.health.ready
        assert worker.hot.lag()[worker.topics.conversations] == 2
