"""Stops Faust. Before it stops, pending records are delivered to the broker, or given up after some seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from schemas.errors import SiltstoneError
from streams.kafka.broker_link import BrokerLink
from streams.kafka.clients.broker import NOT_ALLOWED
from streams.recall.search import Recall
from streams.runtime.ending import AGAIN_SECONDS, ended
from streams.worker.wiring.context import WorkerContext

log = logging.getLogger(__name__)

#: Seconds for which a stopping worker waits for the broker to accept the last accesses. They are a part of
#: `FLUSH_SECONDS`.
TELL_SECONDS: Final = 2.0
#: Seconds for which a stopping worker waits for the broker to accept all pending records.
FLUSH_SECONDS: Final = 6.0
#: If the broker has not accepted the records: seconds for which a stopping worker waits until the cancelled tasks
#: have ended. After that, the tasks are left running.
LEAVE_SECONDS: Final = 2.0


class FaustRun:
    """Stops Faust in two steps, `stop` and `leave`. Between the steps, the worker ends writes and closes shards."""

    def __init__(self, context: WorkerContext, recall: Recall, broker: BrokerLink) -> None:
        self._faust, self._hot, self._recall, self._broker = context.faust, context.hot, recall, broker
        self._stopping: asyncio.Task[None] | None = None
        self._given_up = ExitStack()

    async def stopped(self) -> None:
        """Wait until Faust stops or is halted. Raises the error that stopped it."""
        ends = [asyncio.ensure_future(end) for end in (self._hot.until_halted(), self._faust.wait_until_stopped())]
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in done:
                await end
        except NOT_ALLOWED as exc:
            raise await self._broker.lacking(exc) from exc
        finally:
            for end in ends:
                end.cancel()
        if (reason := self._faust.crash_reason) is not None:
            raise SiltstoneError(f"the worker crashed: {type(reason).__name__}: {reason}") from reason

    async def stop(self) -> None:
        """Commit and stop Faust, or give up after `FLUSH_SECONDS`.

        This does not use `asyncio.timeout`, because Faust ignores the cancellation, and goes on to stop its next
        service.
        """
        self._stopping = asyncio.create_task(self._commit_and_stop())
        await asyncio.wait([self._stopping], timeout=FLUSH_SECONDS)
        if not self._stopping.done():
            self._given_up.enter_context(_no_news())
            self._hot.abandon()
            log.warning("the broker did not accept the due records: the next start reads their messages again")
        self._hot.outbox.abandon()

    async def leave(self) -> None:
        """Cancel the stop of Faust if it was given up. Raises the error that the stop of Faust raised."""
        with self._given_up:
            if self._stopping is not None:
                await ended([self._stopping], LEAVE_SECONDS, first=AGAIN_SECONDS)
                if self._stopping.done() and not self._stopping.cancelled():
                    self._stopping.result()

    async def _commit_and_stop(self) -> None:
        try:
            async with asyncio.timeout(TELL_SECONDS):
                await self._recall.tell_accesses()
        except TimeoutError:
            log.info("the last accesses were not sent: the broker does not accept them")
        finally:
            await self._faust.stop()


@contextmanager
def _no_news() -> Iterator[None]:
    """Suppress Faust's log lines about cancelled tasks until the block ends."""
    faust = logging.getLogger("faust")
    before = faust.level
    faust.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        faust.setLevel(before)
