"""Processes that serve all processes of a test run: to start one for each of those takes seconds of a processor.

Who starts tests beside each other calls `begin`; otherwise a server is started when it is needed for the first time.
Each ends with the process that started it.
"""

from __future__ import annotations

import atexit
import functools
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Final

from tests.support.signals import default_signals
from tests.support.untouched import lasting

ROOT: Final = Path(__file__).parents[2]
#: Each calls `accepted` with what it is given here.
SERVERS: Final = {
    "model": "from tests.support.shared_model import serve; serve({}, {})",
    "commands": "from tests.support.quick_commands import serve; serve({}, {})",
}
#: Where their sockets are, for the processes that were started by the one that began them.
VARIABLE: Final = "TEST_SERVERS"

_one_at_a_time = threading.Lock()


def begin() -> None:
    """Have all of them, for this process and for those that it will start."""
    folder = _folder()
    for name in SERVERS:
        _start(folder / name)
    os.environ[VARIABLE] = str(folder)


def connected(name: str) -> socket.socket:
    """A connection to that server."""
    path = _folder() / name
    with _one_at_a_time:
        if not path.exists():
            _start(path)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    return connection


def accepted(listening: int, alive: int) -> Generator[socket.socket, None, None]:
    """In a server: each connection, until the process that started it has ended."""
    with socket.socket(fileno=listening) as listener:
        sources = [listener.fileno(), alive]
        while alive not in select.select(sources, [], [])[0]:
            yield listener.accept()[0]


@functools.cache
def _folder() -> Path:
    if given := os.environ.get(VARIABLE):
        return Path(given)
    folder = tempfile.mkdtemp(prefix="servers-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _start(path: Path) -> None:
    with lasting():
        _begin(path)


def _begin(path: Path) -> None:
    alive, ours = os.pipe()  # its other end closes with this process, however that ends
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        program = SERVERS[path.name].format(listener.fileno(), alive)
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[listener.fileno(), alive],
            preexec_fn=default_signals,  # which the commands that it forks inherit
        )
    os.close(alive)

    def end() -> None:
        os.close(ours)
        process.kill()
        process.wait()

    atexit.register(end)
