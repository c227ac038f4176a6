"""A worker in a process of the main environment, and clients of it; here are only the client and the frameworks."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from siltstone_client import Memory

ROOT = Path(__file__).parents[2]
SILTSTONE = Path(os.environ.get("SILTSTONE_COMMAND", ROOT / ".venv" / "bin" / "siltstone"))
START_SECONDS = 120.0


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


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
    address, log = f"http://127.0.0.1:{(port := free_port())}", folder / "log"
    settings = {"SILTSTONE_LIFECYCLE__CLOCK": "event", "SILTSTONE_KAFKA__PARTITIONS": "2"}
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [SILTSTONE, "dev", "--data", folder / "data", "--port", str(port)],
            cwd=folder,
            env={**os.environ, **settings},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _until_ready(address, worker, log)
            yield address
        finally:
            worker.send_signal(signal.SIGINT)
            try:
                worker.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()


@pytest.fixture
def memory(url: str) -> Iterator[Memory]:
    """A client that sees at once what it has written."""
    with Memory(url, timeout=30, read_your_writes=True) as made:
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
