"""A worker in its own process, as `siltstone worker` runs it, observed from outside: over HTTP and in `/proc`."""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import httpx

from benchmarks.state.process_memory import anonymous_bytes
from schemas.settings import KafkaSettings
from streams.kafka.clients.broker import EMBEDDED_PARTITIONS, EmbeddedBroker
from streams.runtime.children import die_with_parent
from streams.runtime.ports import reserved_port

READY_SECONDS: Final = 60.0
STOP_SECONDS: Final = 30.0
#: A worker that makes no progress for this long is stuck.
STALLED_SECONDS: Final = 120.0
LOOK_AGAIN_SECONDS: Final = 0.1
#: A benchmark does not use these variables of the machine that it runs on.
FOREIGN: Final = ("SILTSTONE_", "NANOBOT_", "OPENAI_", "OMP_", "OPENBLAS_", "MKL_")


class WorkerProcess:
    """A running worker. Resident memory is read from Linux's `/proc`."""

    def __init__(self, process: asyncio.subprocess.Process, http: httpx.AsyncClient, log: Path) -> None:
        self._process, self.http, self._log = process, http, log

    async def pipeline(self) -> dict[str, Any]:
        """The worker's counts since its start, and its lag by topic."""
        told: dict[str, Any] = (await self.http.get("/v1/stats/pipeline")).raise_for_status().json()
        return told

    @property
    def pid(self) -> int:
        """The id of the worker's own process; the processes that it started are its children."""
        return self._process.pid

    async def states(self) -> dict[str, Any]:
        """The number of memories, in total and by state."""
        told: dict[str, Any] = (await self.http.get("/v1/stats/states")).raise_for_status().json()
        return told

    async def exposition(self) -> str:
        """Its metrics, as Prometheus scrapes them."""
        return (await self.http.get("/metrics")).raise_for_status().text

    async def gauge(self, name: str) -> int:
        """The value of a metric without labels."""
        lines = (await self.exposition()).splitlines()
        return next(round(float(line.split()[1])) for line in lines if line.startswith(f"{name} "))

    async def taken_in(self) -> int:
        """The number of messages that are in the windows."""
        return int((await self.pipeline())["messages"])

    async def until_idle(self) -> None:
        """Wait until windows and shards hold everything that was produced, and no decision is pending."""
        moved_at, before = time.monotonic(), dict[str, Any]()
        while not _is_idle(now := await self.pipeline()):
            if now != before:
                moved_at, before = time.monotonic(), now
            elif time.monotonic() - moved_at > STALLED_SECONDS:
                raise click.ClickException(f"the worker makes no progress: {now['lag']} records are not processed")
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    def rss_mb(self) -> float:
        """Resident memory of the worker's process, without the embedding model's."""
        return _resident_mb(self._process.pid)

    def anonymous_bytes(self) -> int:
        """The memory of the worker's process, without pages of files."""
        return anonymous_bytes(self._process.pid)

    async def kill(self) -> None:
        """Kill the worker, as a power failure does."""
        self._process.kill()
        await self._process.wait()

    async def stop(self, seconds: float = STOP_SECONDS) -> float:
        """Stop the worker; return the seconds that this took. If it takes longer than `seconds`, it is killed."""
        started = time.monotonic()
        if self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), seconds)
            except TimeoutError:
                await self.kill()
        return time.monotonic() - started

    def last_words(self) -> str:
        """The end of its log."""
        return self._log.read_text()[-500:]

    async def until_ready(self, seconds: float = READY_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(httpx.TransportError):
                if (await self.http.get("/readyz")).status_code == 200:
                    return
            if self._process.returncode is not None or time.monotonic() > deadline:
                raise click.ClickException(f"the worker did not become ready: {self.last_words()}")
            await asyncio.sleep(LOOK_AGAIN_SECONDS)


@contextlib.asynccontextmanager
async def working(
    kafka: KafkaSettings,
    folder: Path,
    settings: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
    ready: bool = True,
) -> AsyncIterator[WorkerProcess]:
    """A worker with its data in `folder`, until the block ends. `settings` are variables without `SILTSTONE_`.

    Its embedding is `use`, also if `e5` is installed, unless they name another one. The block begins when the worker
    is ready, unless `ready` is false. `environment` has variables of other programs.
    """
    with reserved_port() as port:
        names = ("bootstrap_servers", "topic_prefix", "group_id", "partitions")
        timeouts = ("session_timeout_seconds", "rebalance_timeout_seconds", "heartbeat_seconds")
        given = {
            "DATA_DIR": str(folder / "data"),
            "HTTP__PORT": str(port),
            "EMBEDDING__BACKEND": "use",
            **{f"KAFKA__{name.upper()}": str(getattr(kafka, name)) for name in (*names, *timeouts)},
            **settings,
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        kept |= environment or {}
        log = folder / "worker.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(
                    sys.executable,
                    "-c",
                    "from streams.doors.cli import main; main()",
                    "worker",
                    "--log-level",
                    "WARNING",
                ),
                stderr=output,
                env=kept | {f"SILTSTONE_{name}": value for name, value in given.items()},
                cwd=folder,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )
        address = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=30) as http:
            worker = WorkerProcess(process, http, log)
            try:
                if ready:
                    await worker.until_ready()
                yield worker
            finally:
                await worker.stop()


def kafka_at(broker: EmbeddedBroker, name: str, partitions: int = EMBEDDED_PARTITIONS) -> KafkaSettings:
    """Settings with separate topics and a separate group on this broker."""
    kafka = broker.settings(KafkaSettings(topic_prefix=f"{name}.", group_id=name))
    return kafka.model_copy(update={"partitions": partitions})


def _is_idle(told: dict[str, Any]) -> bool:
    """Compares promotions with memories too: for a moment, a promotion on its way is in no topic's lag."""
    kept = sum(told["memories"].get(effect, 0) for effect in ("new", "merged", "repeated", "forgotten"))
    return not any(told["lag"].values()) and kept >= sum(told["decisions"]["promoted"].values())


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
