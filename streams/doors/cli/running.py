"""Runs a worker in the process of a command: retries, signals, and a clean stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine

import click

from schemas.errors import BrokerEmptied, NotAllowed, TopicsRemade
from schemas.settings import Settings
from streams.app import Siltstone

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def started(settings: Settings, *, patient: bool = False) -> AsyncIterator[Siltstone]:
    """Start a worker, and stop it after the block. If `patient`, the worker waits until its broker answers."""
    worker = Siltstone(settings)
    try:
        await worker.start(patient=patient)
        yield worker
    finally:
        await worker.stop()


async def until_ready(worker: Siltstone) -> None:
    """Wait until the worker is ready. If the worker stops first, raise the error that stopped it."""
    stopped = asyncio.ensure_future(worker.stopped())
    try:
        while worker.health.not_ready():
            if stopped.done():
                await stopped
            await asyncio.sleep(0.05)
    finally:
        stopped.cancel()


async def until_interrupted(worker: Siltstone) -> None:
    """Wait for SIGINT or SIGTERM. If the worker stops first, raise the error that stopped it."""
    stopped, interrupted = asyncio.ensure_future(worker.stopped()), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    waiting = asyncio.ensure_future(interrupted.wait())
    await asyncio.wait([stopped, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not interrupted.is_set():
        await stopped
    stopped.cancel()


def dashboard(worker: Siltstone) -> str:
    """Return the URL of the worker's dashboard for a browser on this machine."""
    return f"{worker.api.url}/ui"


async def serve(
    settings: Settings,
    *,
    patient: bool,
    announce: Callable[[Siltstone], None],
    beside: Callable[[], Coroutine[None, None, None]] | None = None,
) -> None:
    """Run a worker until SIGINT or SIGTERM. Call `announce` when it is ready. Raise the error that stopped it.

    After some errors, for example if topics were recreated, a new worker is started instead. A signal during the
    start also stops the worker cleanly. Further signals have no effect. `beside` runs at the same time as the worker.
    If `beside` fails, the worker is stopped, and then the error of `beside` is raised.
    """
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    working = asyncio.ensure_future(_work(settings, patient, announce))
    stop = asyncio.ensure_future(interrupted.wait())
    watching = asyncio.ensure_future(beside() if beside else asyncio.Event().wait())
    await asyncio.wait([working, stop, watching], return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if interrupted.is_set():
        click.echo("stopping …", err=True)
    working.cancel()
    if watching.done() and not interrupted.is_set():
        await asyncio.wait([working])
        await watching
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working


async def _work(settings: Settings, patient: bool, announce: Callable[[Siltstone], None]) -> None:
    while True:
        try:
            async with started(settings, patient=patient) as worker:
                await until_ready(worker)
                announce(worker)
                await worker.stopped()
                return
        except TopicsRemade as exc:
            log.info("%s; this happens now", exc)  # no warning, because the new worker will log one
        except BrokerEmptied as exc:
            log.warning("%s; this happens now", exc)
        except NotAllowed as exc:
            if not (patient and exc.waits):
                raise  # a new worker would fail with the same error
