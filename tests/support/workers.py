"""Workers as processes of their own, which can be killed; and what they hold."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Self

import duckdb
import httpx

from schemas.settings import Settings
from tests.support.one_fleet import one_fleet
from tests.support.ports import free_port
from tests.support.signals import default_signals
from tests.support.waiting import PACE, PATIENCE, NoAnswer, told_of

SILTSTONE = (sys.executable, "-c", "from streams.doors.cli import main; main()")
#: The same for whom retrieval is not the subject: no model is loaded, and no process started for it.
WITH_TOY = (sys.executable, "-m", "tests.support.toy_worker")

#: How much of the end of a worker's log is shown.
LOG_BYTES = 4_000


class WorkerProcess(subprocess.Popen[bytes]):
    """A worker that was started; a wait for it tells what it says of itself, and has said last."""

    def __init__(
        self, command: Sequence[str], port: int, environment: Mapping[str, str], stderr: IO[bytes] | None = None
    ) -> None:
        super().__init__(
            command, env=environment, cwd=Path(__file__).parents[2], stderr=stderr, preexec_fn=default_signals
        )
        self.port = port
        #: Without a file of its own: our standard error, which pytest has in a file where it captures it.
        self.log = Path("/proc/self/fd/2" if stderr is None else stderr.name)

    def ended(self) -> bool:
        return self.poll() is not None

    def told(self) -> str:
        return f"{told_of(self)}{'' if self.ended() else self._readyz()}\n{self._end_of_log()}"

    def _readyz(self) -> str:
        try:
            return f", /readyz: {asked(self.port, '/readyz')}"
        except NoAnswer as exc:
            return f", no answer from {exc}"

    def _end_of_log(self) -> str:
        if not self.log.is_file():
            return "its log is on standard error"
        with self.log.open("rb") as said:
            said.seek(max(0, said.seek(0, os.SEEK_END) - LOG_BYTES))
            return said.read().decode(errors="replace")


@contextmanager
def worker_process(
    settings: Settings,
    port: int,
    data: Path | None = None,
    *,
    program: Sequence[str] = WITH_TOY,
    environment_of_its_own: Mapping[str, str] | None = None,
    stderr: IO[bytes] | None = None,
) -> Iterator[WorkerProcess]:
    """`siltstone worker` as its own process, with policy `all`: every exchange becomes a memory."""
    kafka = settings.kafka
    environment = {
        **os.environ,
        "SILTSTONE_DATA_DIR": str(data or settings.data_dir),
        "SILTSTONE_MEMORY__SCORING__POLICY": "all",
        "SILTSTONE_MEMORY__CAPACITY": "200",
        "SILTSTONE_LONG_TERM__NEAR_COPY": "1",
        "SILTSTONE_LIFECYCLE__CLOCK": settings.lifecycle.clock,
        "SILTSTONE_HTTP__PORT": str(port),
        "SILTSTONE_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "SILTSTONE_KAFKA__TOPIC_PREFIX": kafka.topic_prefix,
        "SILTSTONE_KAFKA__GROUP_ID": kafka.group_id,
        "SILTSTONE_KAFKA__PARTITIONS": str(kafka.partitions),
        "SILTSTONE_KAFKA__REPLICATION": str(kafka.replication),
        "SILTSTONE_KAFKA__SESSION_TIMEOUT_SECONDS": str(kafka.session_timeout_seconds),
        "SILTSTONE_KAFKA__REBALANCE_TIMEOUT_SECONDS": str(kafka.rebalance_timeout_seconds),
        "SILTSTONE_KAFKA__HEARTBEAT_SECONDS": str(kafka.heartbeat_seconds),
        **(environment_of_its_own or {}),
    }
    command = [*program, "worker", "--log-level", "WARNING"]
    with one_fleet():
        process = WorkerProcess(command, port, environment, stderr)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@functools.cache
def _asking() -> httpx.Client:
    """One for all questions: to make it takes longer than to ask, and some are asked ten times a second."""
    return httpx.Client(timeout=5, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


def asked(port: int, path: str) -> dict[str, Any]:
    """What a worker answers. Raises `NoAnswer` where it does not, or cannot (503); `until` then asks again.

    A worker that is not ready says so by a 503 of /readyz, which is an answer.
    """
    try:
        answer = _asking().get(f"http://127.0.0.1:{port}{path}")
        if answer.is_server_error and path != "/readyz":
            answer.raise_for_status()
        told: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError) as exc:
        raise NoAnswer(f"{path} of port {port}: {exc!r}") from exc
    return told


def surely_asked(port: int, path: str) -> dict[str, Any]:
    """As `asked`, and asked again while there is no answer: for what is looked at once. Raises `NoAnswer` at last."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return asked(port, path)
        except NoAnswer:
            if time.monotonic() > deadline:
                raise
        time.sleep(PACE)


def sources(settings: Settings, data: Path | None = None) -> Counter[str]:
    """How often each message is the source of a memory, over all shards."""
    found: Counter[str] = Counter()
    for path in (data or settings.data_dir).glob("shards/*/catalog.duckdb"):
        with duckdb.connect(str(path)) as db:
            found.update(row[0] for row in db.execute("SELECT unnest(message_ids) FROM memories").fetchall())
    return found


class Fleet:
    """Several workers on one data directory; those that are left at the end of the block are killed."""

    def __init__(self, settings: Settings, workers: int) -> None:
        self._settings, self._workers = settings, workers
        self._stack = ExitStack()
        self._running: dict[int, WorkerProcess] = {}

    def __enter__(self) -> Self:
        self._stack.enter_context(one_fleet())
        for _ in range(self._workers):
            self.start(free_port())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def ports(self) -> list[int]:
        return list(self._running)

    @property
    def processes(self) -> list[WorkerProcess]:
        return list(self._running.values())

    def ended(self) -> bool:
        """Whether one has ended that was not killed here."""
        return any(process.ended() for process in self.processes)

    def told(self) -> str:
        return "\n".join(process.told() for process in self.processes)

    def start(self, port: int) -> None:
        self._running[port] = self._stack.enter_context(worker_process(self._settings, port))

    async def kill(self, which: int) -> None:
        """Without a word."""
        process = self._running.pop(self.ports[which])
        process.kill()
        await asyncio.to_thread(process.wait)


def ours(said: str) -> list[str]:
    """The lines of the log that are not the Kafka clients' own, in whose words we have no say."""
    return [line for line in said.splitlines() if " aiokafka." not in line]
