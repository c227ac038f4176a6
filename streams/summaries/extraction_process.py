"""Makes summaries without a model in a separate process, which is restarted when it dies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from schemas.one_blas_thread import ONE_THREAD
from streams.runtime.called_process import CalledProcess, ProcessDied
from streams.summaries.extraction import Failed, made
from streams.summaries.rules.drafting import Draft, Order

log = logging.getLogger(__name__)

#: Limit of a summary's CPU time (seconds). The longest conversation that is read takes some six seconds.
MOST_SECONDS: Final = 20.0
#: The niceness of the process, so that intake goes first if cores are scarce. With a higher niceness, summaries would
#: get no time under a steady load.
EXTRACTION_NICE: Final = 10


class ExtractionProcess:
    """Makes summaries at a low priority, outside of the event loop and of its interpreter.

    extraction = ExtractionProcess()
    await extraction.drafted([order, …])      # a Draft each; None if it could not be made
    await extraction.close()

    The first order starts the process, so a worker without summaries has none. Calls run one after the other.
    """

    def __init__(self, *, seconds: float = MOST_SECONDS) -> None:
        self._seconds = seconds
        self._process = _process()
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The process id; None if there is no process."""
        return self._process.pid

    async def drafted(self, orders: Sequence[Order]) -> list[Draft | None]:
        """Return the drafts, in the order of `orders`. A draft is None if it could not be made.

        If the process dies, or does not finish in time, it is restarted and gets each order alone. So one bad order
        does not prevent the summaries of all other orders.
        """
        async with self._turn:
            answers = await self._answers(orders)
            if answers is None and len(orders) > 1:
                answers = [(await self._answers([order]) or [None])[0] for order in orders]
        return [None] * len(orders) if answers is None else answers

    async def close(self) -> None:
        """End the process, which holds no state."""
        async with self._turn:
            await self._end()

    async def _answers(self, orders: Sequence[Order]) -> list[Draft | None] | None:
        """Return the process's answers to the orders, or None if the process died or could not be started."""
        if self._process.gone:  # the process died while it was idle
            await self._end()
        try:
            told = await self._process.call(made, orders, self._seconds)
        except ProcessDied as exc:
            log.warning("the summaries' process %s, with %d of them to make; it is started again", exc, len(orders))
            await self._end()
            return None
        except asyncio.CancelledError:
            await asyncio.shield(self._end())  # otherwise the next caller would have to wait for the cancelled call
            raise
        answers: list[Draft | None] = []
        for answer in told:
            if isinstance(answer, Failed):
                log.error("a summary cannot be made: %s", answer.exception)
            answers.append(None if isinstance(answer, Failed) else answer)
        return answers

    async def _end(self) -> None:
        process, self._process = self._process, _process()
        await process.close()


def _process() -> CalledProcess:
    return CalledProcess("summaries", ONE_THREAD, EXTRACTION_NICE)
