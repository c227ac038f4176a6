"""A child process that runs function calls one after the other. No thread of the parent waits for the child.

`concurrent.futures` passes each call through two threads of the parent, and each answer through one. Each of these
threads must wait for the interpreter's lock, so a call of 5 ms took 80 ms while other threads were busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, TypeVarTuple, cast

from streams.runtime.calls import LENGTH_BYTES, frame

Given = TypeVarTuple("Given")
T = TypeVar("T")

_PROGRAM: Final = "streams.runtime.calls"


class ProcessDied(Exception):
    """The child process ended before it answered, or could not be started.

    The text of the exception is a predicate, such as "has died". The caller puts the name of the process before it.
    """


class CalledProcess:
    """A child process with additional environment `variables` and a higher `niceness`. The first call starts it.

    Its `name` is the last argument of its command line, so that an operator recognizes it in a list of processes.

        process = CalledProcess("embedding", ONE_THREAD)
        answer = await process.call(function, *arguments)
        await process.close()

    Functions are passed by name: the child imports their modules, but not our main module. Arguments, answers and
    exceptions are pickled. On Linux, the child is killed when this process ends for any reason.
    """

    def __init__(self, name: str, variables: Mapping[str, str], niceness: int = 0) -> None:
        self._name, self._variables, self._niceness = name, variables, niceness
        self._child: subprocess.Popen[bytes] | None = None
        self._connected: asyncio.Task[_Connection] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id; None if the child was not started."""
        return None if self._child is None else self._child.pid

    @property
    def gone(self) -> bool:
        """True if the child has ended, or could not be started."""
        connected = self._connected
        if connected is None or not connected.done():
            return False
        return connected.exception() is not None or not connected.result().open

    async def call(self, function: Callable[[*Given], T], *given: *Given) -> T:
        """Call the function in the child, and return its result. Raises the function's exception, or `ProcessDied`.

        If the caller is cancelled, the child still finishes the call.
        """
        if self._connected is None:
            self._connected = asyncio.create_task(self._started())
        connection = await asyncio.shield(self._connected)
        return cast(T, await connection.ask(frame((function, given))))

    async def close(self) -> None:
        """Kill the process, even during a call; callers that still wait for an answer get `ProcessDied`."""
        if self._connected is not None:
            with contextlib.suppress(ProcessDied):
                (await self._connected).close()
        if self._child is not None:
            self._child.kill()
            await asyncio.to_thread(self._child.wait)

    async def _started(self) -> _Connection:
        ours, its = socket.socketpair()
        try:
            with its:
                self._child = self._spawned(its.fileno())
            _, connection = await asyncio.get_running_loop().create_connection(_Connection, sock=ours)
        except BaseException as exc:
            ours.close()
            if not isinstance(exc, OSError):
                raise
            raise ProcessDied(f"cannot be started ({exc})") from exc
        return connection

    def _spawned(self, descriptor: int) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, sys.path))
        return subprocess.Popen(
            [sys.executable, "-m", _PROGRAM, str(descriptor), str(os.getpid()), str(self._niceness), self._name],
            stdin=subprocess.DEVNULL,
            pass_fds=[descriptor],
            env={**os.environ, **self._variables, "PYTHONPATH": path},
            process_group=0,  # a Ctrl-C reaches only the parent, which ends the child
        )


class _Connection(asyncio.Protocol):
    """The socket to the child. Answers arrive in the order of the calls."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    @property
    def open(self) -> bool:
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    async def ask(self, call: bytes) -> Any:
        if self._transport is None:
            raise ProcessDied("has died")
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._transport.write(call)
        return await answer

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._end_of_frame()) is not None:
            returned, answer = pickle.loads(self._received[LENGTH_BYTES:end])
            del self._received[:end]
            asked = self._waiting.popleft()
            if asked.done():  # the caller that waited for this answer was cancelled
                continue
            if returned:
                asked.set_result(answer)
            else:
                asked.set_exception(answer)

    def _end_of_frame(self) -> int | None:
        """Return the length of the first frame in the received bytes; None if the frame is not complete yet."""
        received = len(self._received)
        if received < LENGTH_BYTES:
            return None
        end = LENGTH_BYTES + int.from_bytes(self._received[:LENGTH_BYTES])
        return end if received >= end else None

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        for asked in self._waiting:
            if not asked.done():
                asked.set_exception(ProcessDied("has died"))
        self._waiting.clear()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
