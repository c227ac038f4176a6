"""A time limit for the head of a request. uvicorn has no limit after the first byte of the head has arrived."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 15.0


class PatientForHeads(H11Protocol):
    """Closes a connection on which the head of a request does not arrive in time.

    Between two requests, the timeout of uvicorn applies. For the body of a request, the limit of `Bodies` applies.
    """

    _closing: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, head_seconds: float = HEAD_SECONDS, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_seconds = head_seconds
        #: The access log is disabled here instead of by uvicorn's option, because that option would remove the
        #: handlers of the access logger, which the whole process shares.
        self.access_log = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._wait_no_more()
        elif self._closing is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._closing = self.loop.call_later(self._head_seconds, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
