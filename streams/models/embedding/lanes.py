"""Schedules the calls of a local embedding model. Questions go first, and a call can serve several callers.

A person waits for a question's vector, but promotions can wait in their topic. So a question overtakes all texts of
promotions ("bulk") that have not been passed to the model yet. The model has at most two calls of `SLICE` texts at a
time. While it computes the first call, the second is ready, so that the model is not idle if the event loop is late.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np

from schemas.errors import SiltstoneError
from streams.models.embedding.embedders import Side, Vectors
from streams.runtime.called_process import ProcessDied

#: Maximum number of texts in a call.
SLICE: Final = 16
#: Maximum number of calls that are passed to the model at a time.
UNDER_WAY: Final = 2
#: Maximum number of consecutive calls for questions while bulk texts are waiting. The next call has bulk texts.
QUESTIONS_IN_A_ROW: Final = 8
#: After this many processes in a row have died while they embedded a text, the text's caller gets an error.
MOST_DEATHS: Final = 3


@dataclass(eq=False, slots=True)
class _Caller:
    """The texts of one call of `Lanes.embed`, and the vectors for which the caller waits."""

    texts: Sequence[str]
    of: Side
    urgent: bool
    done: asyncio.Future[Vectors]
    missing: int
    vectors: Vectors | None = None

    def fill(self, start: int, vectors: Vectors) -> None:
        if self.vectors is None:
            self.vectors = np.empty((len(self.texts), vectors.shape[1]), np.float32)
        self.vectors[start : start + len(vectors)] = vectors
        self.missing -= len(vectors)
        if not self.missing and not self.done.done():
            self.done.set_result(self.vectors)

    def fail(self, exc: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(exc)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of a caller's texts: those from index `start` up to `stop` (excluded). They are waiting or in a call."""

    asked: _Caller
    start: int
    stop: int
    #: True if a call with this part has failed. The part then gets a separate call, so that others do not fail.
    alone: bool = False
    deaths: int = 0

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def texts(self) -> Sequence[str]:
        return self.asked.texts[self.start : self.stop]

    def divided(self, most: int) -> tuple[_Part, _Part | None]:
        """Divide this part: return a part of at most `most` texts, and a part with the rest (None if empty)."""
        if len(self) <= most:
            return self, None
        middle = self.start + most
        return replace(self, stop=middle), replace(self, start=middle)


class Lanes:
    """Calls a model, by `call(texts, of)`, with the texts of all waiting callers.

    A call has at most `most` texts, and either questions or documents.

    If a call for several callers fails, it is repeated for each caller separately. If `call` raises `ProcessDied`,
    the model's process has died and has been replaced, and the call is repeated.
    """

    def __init__(self, call: Callable[[list[str], Side], Awaitable[Vectors]], most: int = SLICE) -> None:
        self._call, self._most = call, min(most, SLICE)
        self._questions: deque[_Part] = deque()
        self._bulk: deque[_Part] = deque()
        self._calls: set[asyncio.Task[None]] = set()
        self._alone = False
        self._in_a_row = 0

    async def embed(self, texts: Sequence[str], of: Side, *, urgent: bool) -> Vectors:
        """Return the vectors of the texts, float32[n, d]. There must be at least one text.

        Raises the model's error only if these texts cause it, not if texts of other callers cause it.
        """
        asked = _Caller(texts, of, urgent, asyncio.get_running_loop().create_future(), len(texts))
        self._lane(asked).append(_Part(asked, 0, len(texts)))
        self._go_on()
        return await asked.done

    async def close(self) -> None:
        """Cancel waiting texts and running calls."""
        for part in chain(self._questions, self._bulk):
            part.asked.done.cancel()
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    def _lane(self, asked: _Caller) -> deque[_Part]:
        return self._questions if asked.urgent else self._bulk

    def _go_on(self) -> None:
        """Start calls until the model has `UNDER_WAY` calls, or no texts are waiting."""
        while len(self._calls) < UNDER_WAY and not self._alone:
            lane = self._next_lane()
            if not lane or (lane[0].alone and self._calls):
                return
            self._alone = lane[0].alone
            self._in_a_row = self._in_a_row + 1 if lane is self._questions else 0
            task = asyncio.ensure_future(self._make(self._taken(lane)))
            self._calls.add(task)
            task.add_done_callback(self._made)

    def _made(self, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        self._alone = False
        if not task.cancelled():
            self._go_on()

    def _next_lane(self) -> deque[_Part]:
        for lane in (self._questions, self._bulk):
            while lane and lane[0].asked.done.done():  # its caller was cancelled, or has got an error
                lane.popleft()
        if self._questions and not (self._bulk and self._in_a_row >= QUESTIONS_IN_A_ROW):
            return self._questions
        return self._bulk

    def _taken(self, lane: deque[_Part]) -> list[_Part]:
        """Take the parts for the next call from the waiting parts in `lane`.

        The rest of a long part goes to the end of the lane, so that it does not delay short parts.
        """
        of = lane[0].asked.of
        taken = [] if not lane[0].alone else [lane.popleft()]
        room = 0 if taken else self._most
        for _ in range(len(lane)):
            if not room or lane[0].alone or lane[0].asked.of != of:
                break
            part, rest = lane.popleft().divided(room)
            if rest is not None:
                lane.append(rest)
            if not part.asked.done.done():
                taken.append(part)
                room -= len(part)
        return taken

    async def _make(self, parts: list[_Part]) -> None:
        try:
            vectors = await self._call([text for part in parts for text in part.texts], parts[0].asked.of)
        except asyncio.CancelledError:
            for part in parts:
                part.asked.done.cancel()
            raise
        except ProcessDied:
            for part in reversed(parts):
                if part.deaths + 1 < MOST_DEATHS:
                    self._lane(part.asked).appendleft(replace(part, alone=True, deaths=part.deaths + 1))
                else:
                    part.asked.fail(_died())
        except Exception as exc:
            if len(parts) == 1:
                parts[0].asked.fail(exc)
                return
            for part in reversed(parts):
                self._lane(part.asked).appendleft(replace(part, alone=True))
        else:
            start = 0
            for part in parts:
                part.asked.fill(part.start, vectors[start : start + len(part)])
                start += len(part)


def _died() -> SiltstoneError:
    return SiltstoneError(
        f"the embedding model's process died {MOST_DEATHS} times in a row, usually for lack of memory: "
        "give it more, or set a smaller embedding.model"
    )
