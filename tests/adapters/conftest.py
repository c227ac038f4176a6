"""A worker in a process of the main environment, and clients of it; here are only the client and the frameworks."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from siltstone_client import Memory

ROOT = Path(__file__).parents[2]
SILTSTONE = Path(os.environ.get("SILTSTONE_COMMAND", ROOT / ".venv" / "bin" / "siltstone"))
START_SECONDS = 120.0


#: Below those that systems give to outgoing connections.
PORTS = range(20_000, 32_768)


@contextmanager
def reserved_port() -> Iterator[int]:
    """As `streams.runtime.ports`, which is not in this environment: a UDP socket holds a TCP port for the worker."""
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
            try:
                holder.bind(("127.0.0.1", port))
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            except OSError:  # reserved, or listened on
                continue
            yield port
            return
    raise OSError("no loopback port is free")


def _default_signals() -> None:
    """In the worker: a Ctrl-C ends it, though a runner in the background ignores that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _until_ready(url: str, worker: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if worker.poll() is not None:
            break
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass  # nobody listens yet
        time.sleep(0.1)
    raise RuntimeError(f"{SILTSTONE} is not ready: {log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a worker with its own broker, whose clock is the newest event's."""
    folder = tmp_path_factory.mktemp("worker")
    log = folder / "log"
    settings = {"SILTSTONE_LIFECYCLE__CLOCK": "event", "SILTSTONE_KAFKA__PARTITIONS": "2"}
    with reserved_port() as port, log.open("wb") as output:
        address = f"http://127.0.0.1:{port}"
        worker = subprocess.Popen(
            [SILTSTONE, "dev", "--data", folder / "data", "--port", str(port)],
            cwd=folder,
            env={**os.environ, **settings},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_default_signals,
        )
        try:
            _until_ready(address, worker, log)
            yield address
        finally:
            worker.send_signal(signal.SIGINT)
            try:
                worker.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()


@pytest.fixture
def memory(url: str) -> Iterator[Memory]:
    """A client that sees at once what it has written."""
    with Memory(url, timeout=START_SECONDS, read_your_writes=True) as made:
        yield made


@pytest.fixture
def user() -> str:
    """Nobody has said anything of this one before."""
    return f"user-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def said(memory: Memory, user: str) -> Callable[[str], list[tuple[str, str]]]:
    """Role and text of all that was said in a session, in its order."""

    def of(session_id: str) -> list[tuple[str, str]]:
        shown = memory.exchanges(user_id=user, session_id=session_id, limit=50)
        return [(one.role, one.content) for exchange in shown.exchanges for one in exchange.messages]

    return of


@pytest.fixture
def touches(url: str, user: str) -> Iterator[Callable[[], int]]:
    """How many searches were sent that count as accesses, through any client."""
    asked: list[bool] = []
    search = Memory.search

    def noted(self: Memory, query: str, **fields: Any) -> Any:
        asked.append(bool(fields.get("touch", True)))
        return search(self, query, **fields)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memory, "search", noted)
        yield lambda: sum(asked)
