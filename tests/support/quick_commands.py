"""`siltstone …` as a process of its own that has imported everything already: a fork of one that waits for commands.

To import what a command consists of takes longer than most commands; `tests/docs/test_readme.py` starts some as users
do.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from streams.doors.cli import COMMANDS
from streams.doors.cli import main as command
from streams.runtime.children import die_with_parent
from tests.support.shared_servers import accepted, connected
from tests.support.waiting import PATIENCE

_LENGTH_BYTES = 8


class Asked(NamedTuple):
    words: tuple[str, ...]
    environment: dict[str, str]
    folder: str


async def siltstone(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as its own process, beside the worker in this one."""
    asked = Asked(words, {**os.environ, **environment}, str(Path.cwd()))
    return await asyncio.to_thread(_answered, asked)


def _answered(asked: Asked) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, connected("commands") as waiting:
        content = pickle.dumps(asked)
        socket.send_fds(waiting, [len(content).to_bytes(_LENGTH_BYTES)], [out.fileno(), err.fileno()])
        waiting.sendall(content)
        waiting.settimeout(PATIENCE)
        code = int(waiting.recv(16))
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(asked.words, code, out.read().decode(), err.read().decode())


# In the process that waits


def serve(listening: int, alive: int) -> None:
    """Fork for each command."""
    for place in COMMANDS.values():
        pkgutil.resolve_name(f"streams.doors.cli.{place}")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    waiting, connections = os.getpid(), accepted(listening, alive)
    for connection in connections:
        if os.fork() == 0:
            break
        connection.close()
    else:
        return
    connections.close()
    die_with_parent(waiting)
    _work(connection)


def _work(connection: socket.socket) -> None:
    """Have a child do what is asked, and tell how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, (out, err), _, _ = socket.recv_fds(connection, _LENGTH_BYTES, 2)
    with connection.makefile("rb") as content:
        asked = pickle.loads(content.read(int.from_bytes(head)))
    watching = os.getpid()
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    die_with_parent(watching)
    connection.close()
    os.dup2(out, sys.stdout.fileno())
    os.dup2(err, sys.stderr.fileno())
    os.close(out)
    os.close(err)
    os.environ.clear()
    os.environ.update(asked.environment)
    os.chdir(asked.folder)
    sys.argv[1:] = asked.words
    command()
