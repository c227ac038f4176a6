"""Summaries without a model, made in a process of their own, which is started again when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import Final

from schemas.one_blas_thread import ONE_THREAD
from streams.clients.extraction import LENGTH_BYTES, Failed, frame
from streams.rules.summary.drafting import Draft, Order

log = logging.getLogger(__name__)

#: What a summary may take, in seconds of CPU time; the longest that is read takes less than one.
MOST_SECONDS: Final = 20.0
#: How long the end of a process is waited for.
END_SECONDS: Final = 2.0
_PROGRAM: Final = "streams.clients.extraction"


class ExtractionProcess:
    """Makes summaries at a low priority, out of the way of the event loop and of its interpreter.

    extraction = ExtractionProcess()
    await extraction.drafted([order, …])      # a Draft each, or None where it could not be made
    await extraction.close()

    The process is started by the first order: a worker without summaries has none. Calls are worked on one after the
    other.
    """

    def __init__(self, *, seconds: float = MOST_SECONDS, program: str = _PROGRAM) -> None:
        self._seconds, self._program = seconds, program
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The process, where there is one."""
        return None if self._process is None else self._process.pid

    async def drafted(self, orders: Sequence[Order]) -> list[Draft | None]:
        """The drafts of these orders, in their order.

        What the process dies of, or does not come to an end with, costs nobody else a summary: it is started again,
        and asked for each of the orders alone.
        """
        async with self._turn:
            answers = await self._answers(orders)
            if answers is None and len(orders) > 1:
                answers = [(await self._answers([order]) or [None])[0] for order in orders]
        return [None] * len(orders) if answers is None else answers

    async def close(self) -> None:
        """End the process, which holds nothing."""
        async with self._turn:
            if (process := self._process) is not None:
                self._process = None
                await _killed(process)

    async def _answers(self, orders: Sequence[Order]) -> list[Draft | None] | None:
        """None where the process did not survive, or could not be started."""
        if self._process is not None and _gone(self._process):
            self._process = None
        try:
            process = self._process = self._process or await self._started()
        except OSError as exc:
            log.warning("the summaries' process cannot be started: %s", exc)
            return None
        try:
            told = await _told(process, frame(list(orders)))
        except BaseException as exc:  # what is still in the pipe would be taken for another's answer
            self._process = None
            await asyncio.shield(_killed(process))
            if not isinstance(exc, EOFError | OSError):
                raise
            log.warning("the summaries' process has died, over %d of them; it is started again", len(orders))
            return None
        answers: list[Draft | None] = []
        for answer in told:
            if isinstance(answer, Failed):
                log.error("a summary cannot be made: %s", answer.exception)
            answers.append(None if isinstance(answer, Failed) else answer)
        return answers

    async def _started(self) -> Process:
        path = os.pathsep.join(filter(None, sys.path))
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": path}
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", self._program, str(self._seconds), stdin=PIPE, stdout=PIPE, env=environment
        )


async def _told(process: Process, asked: bytes) -> list[Draft | Failed]:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(asked)
        await process.stdin.drain()
    except RuntimeError as exc:  # uvloop's word for a pipe whose other end is gone
        raise BrokenPipeError(str(exc)) from exc
    head = await process.stdout.readexactly(LENGTH_BYTES)
    told: list[Draft | Failed] = pickle.loads(await process.stdout.readexactly(int.from_bytes(head)))
    return told


def _gone(process: Process) -> bool:
    """Whether it died while it had nothing to do."""
    return process.returncode is not None or process.stdin is None or process.stdin.is_closing()


async def _killed(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    with contextlib.suppress(TimeoutError):  # what nobody reads any more may hold up the end of its pipe
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
