"""Waiting for what happens elsewhere: for long, but not for what has ended.

    await until(lambda: asked(port, "/readyz")["ready"], alive=process)

A busy machine is late, and that is no fault: so every wait has the same long deadline, which costs nothing where the
thing happens. What makes it happen is named as `alive`: a wait fails at once when that has ended.
"""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

#: Seconds for which anything is waited for.
PATIENCE: Final = 120.0
#: Seconds after which a client of a worker gives up: after any wait that it may have asked the worker for.
CLIENT_SECONDS: Final = PATIENCE + 10
#: Seconds between two looks.
PACE: Final = 0.02


class NoAnswer(Exception):
    """What was asked has given no answer, so nothing is known of it; `until` asks again."""


@runtime_checkable
class Watched(Protocol):
    """What can be seen to end."""

    def ended(self) -> bool: ...

    def told(self) -> str:
        """How it ended, or what it is waiting for; and the end of its log."""


class Health(Protocol):
    def not_ready(self) -> list[str]: ...


class Worker(Protocol):
    """A worker of this process: `Siltstone`."""

    @property
    def health(self) -> Health: ...

    async def stopped(self) -> None: ...


Living: TypeAlias = Watched | subprocess.Popen[bytes] | Worker


async def until(
    condition: Callable[[], Any],
    *,
    alive: Living | Iterable[Living] = (),
    seconds: float = PATIENCE,
    pace: float = PACE,
) -> None:
    """Wait until the condition is true.

    Raises `AssertionError` where it is not within `seconds`, or where one of `alive` has ended: with the condition's
    source, what it was last, and what is told by `alive`.
    """

    async def look() -> Any:
        return condition()

    await _wait(look, _source(condition), alive, seconds, pace)


async def until_it_is(
    look: Callable[[], Awaitable[Any]],
    *,
    alive: Living | Iterable[Living] = (),
    seconds: float = PATIENCE,
    pace: float = PACE,
) -> None:
    """As `until`, for a condition that has to be awaited."""
    await _wait(look, _source(look), alive, seconds, pace)


async def _wait(
    look: Callable[[], Awaitable[Any]], source: str, alive: Living | Iterable[Living], seconds: float, pace: float
) -> None:
    deadline, seen = time.monotonic() + seconds, "nothing"
    with ExitStack() as stack:
        watched = [_watched(one, stack) for one in (alive if isinstance(alive, Iterable) else [alive])]
        while True:
            try:
                if value := await look():
                    return
                seen = repr(value)
            except NoAnswer as exc:
                seen = f"no answer ({exc})"
            ended = any(one.ended() for one in watched)
            if ended or time.monotonic() > deadline:
                why = "and cannot any more" if ended else f"in {seconds:g} s"
                told = [one.told() for one in watched]
                raise AssertionError("\n".join([f"it did not happen {why}: {source}", f"seen last: {seen}", *told]))
            await asyncio.sleep(pace)


def _source(condition: Callable[..., Any]) -> str:
    """By which it is recognised: its lines, or its name and what it is called with."""
    if isinstance(condition, partial):
        given = [*map(repr, condition.args), *(f"{name}={value!r}" for name, value in condition.keywords.items())]
        return f"{condition.func.__qualname__}({', '.join(given)})"
    try:
        return textwrap.dedent(inspect.getsource(condition)).strip()
    except (OSError, TypeError):
        return repr(condition)


def _watched(living: Living, stack: ExitStack) -> Watched:
    if isinstance(living, Watched):
        return living
    if isinstance(living, subprocess.Popen):
        return _Process(living)
    stopped = asyncio.ensure_future(living.stopped())
    stack.callback(_let_go, stopped)
    return _Here(living, stopped)


def _let_go(stopped: asyncio.Future[None]) -> None:
    """Nothing is said of an error that is not asked for: the test meets it where it stops the worker."""
    if not stopped.cancel() and not stopped.cancelled():
        stopped.exception()


class _Process:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def ended(self) -> bool:
        return self._process.poll() is not None

    def told(self) -> str:
        return told_of(self._process)


def told_of(process: subprocess.Popen[Any]) -> str:
    """Whether it runs, or its exit code."""
    code = process.poll()
    return f"process {process.pid} {'runs' if code is None else f'has ended with exit code {code}'}"


class _Here:
    """A worker of this process, and the task that ends with it."""

    def __init__(self, worker: Worker, stopped: asyncio.Future[None]) -> None:
        self._worker, self._stopped = worker, stopped

    def ended(self) -> bool:
        return self._stopped.done()

    def told(self) -> str:
        if not self._stopped.done():
            return f"the worker runs; it waits for: {'; '.join(self._worker.health.not_ready()) or 'nothing'}"
        error = None if self._stopped.cancelled() else self._stopped.exception()
        return f"the worker has stopped: {error!r}" if error else "the worker has stopped"
