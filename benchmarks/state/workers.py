"""Workers that start and stop: the time until one answers, with its disk, from a checkpoint, from the log."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.state.object_stores import ObjectStore
from benchmarks.state.process_memory import bytes_on_disk
from benchmarks.worker import LOOK_AGAIN_SECONDS, WorkerProcess, working
from schemas.settings import KafkaSettings

#: A worker that does not answer within this time is not back.
BACK_SECONDS: Final = 1_800.0
#: An orderly stop may include a checkpoint.
STOP_SECONDS: Final = 900.0
#: A folder that has not changed for this long is not being filled.
STILL_SECONDS: Final = 6.0
#: The interval of checkpoints: none is taken during a measurement, unless a leg requests it.
SELDOM: Final = "86400"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A broker's topics, a group, and a user of each partition, who has memories if `known`."""

    kafka: KafkaSettings
    users: Sequence[str]
    settings: Mapping[str, str]
    store: ObjectStore | None = None
    known: bool = True

    @contextlib.asynccontextmanager
    async def worker(self, folder: Path, **more: str) -> AsyncIterator[WorkerProcess]:
        """A worker with its data in this folder, which may not be ready yet; stopped when the block ends."""
        folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - nothing else is going on
        settings, environment = {**self.settings, **more}, dict[str, str]()
        if self.store is not None:
            settings = {"CHECKPOINTS__URL": self.store.url, "CHECKPOINTS__SECONDS": SELDOM, **settings}
            environment |= self.store.environment
        async with working(self.kafka, folder, settings, environment, ready=False) as worker:
            yield worker
            await worker.stop(STOP_SECONDS)

    async def answers(self, worker: WorkerProcess) -> float:
        """Wait until it is ready and has answered a user of each partition; return the seconds."""
        started = time.monotonic()
        await worker.until_ready(BACK_SECONDS)
        await self.answered(worker)
        return time.monotonic() - started

    async def answered(self, worker: WorkerProcess) -> None:
        """Wait until it answers a user of each partition, with memories if there are any."""
        deadline = time.monotonic() + BACK_SECONDS
        for user in self.users:
            while not await self._answered(worker, user):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the worker does not answer {user}: {worker.last_words()}")
                await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _answered(self, worker: WorkerProcess, user: str) -> bool:
        question: dict[str, Any] = {"user_id": user, "query": "which table did I book?", "touch": False}
        try:
            answer = await worker.http.post("/v1/search", json={**question, "include_all": True})
        except httpx.TransportError:
            return False
        return answer.status_code == 200 and (not self.known or bool(answer.json()["results"]))

    async def started(self, folder: Path, kill: bool = False, **more: str) -> float:
        """Seconds until a worker with this folder answers; then it is stopped in order, or killed."""
        async with self.worker(folder, **more) as worker:
            seconds = await self.answers(worker)
            if kill:
                await worker.kill()
        return seconds

    async def lost(self, folder: Path, successor: Path, **more: str) -> float:
        """Two workers share the partitions; the first one is killed. Seconds until the other answers for all of them.

        The kill waits until the other worker has stopped writing: by then it has its copies, if it keeps any.
        """
        async with self.worker(folder, **more) as first:
            await self.answers(first)
            async with self.worker(successor, **more) as second:
                await self.answers(second)
                await _until_still(successor)
                await first.kill()
                started = time.monotonic()
                await self.answered(second)
                return time.monotonic() - started


async def _until_still(folder: Path) -> None:
    """Wait until the bytes of its files have stayed the same for a while."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < STILL_SECONDS:
        if (now := bytes_on_disk(folder)) != size:
            size, since = now, time.monotonic()
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
