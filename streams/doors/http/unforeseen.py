"""Log unexpected exceptions, but only their types and code lines, because their texts may quote users' messages."""

from __future__ import annotations

import logging
import traceback
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.doors.http.refusals import refused

log = logging.getLogger(__name__)

#: The maximum number of stack frames that are logged for an exception, innermost first. The outer frames are the same
#: for all requests.
_FRAMES: Final = 8


class Unforeseen:
    """ASGI middleware that answers an unexpected exception with 500, unless the response has already begun."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def answered(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, answered)
        except Exception as exc:
            log.error("%s %s: %s", scope["method"], _route(scope), _frames(exc))
            if begun:
                raise _Cut from None
            await refused(500, f"{type(exc).__name__}: the worker's log says more")(scope, receive, send)


class _Cut(Exception):
    """Raised if a response has begun, but cannot be completed. The server then closes the connection."""


def _route(scope: Scope) -> str:
    """Return the path template of the request's route, which contains no ids of the request."""
    return getattr(scope.get("route"), "path", "(no route)")


def _frames(exc: BaseException | None) -> str:
    """Return the exception's type and stack frames, innermost first, then the types and frames of its causes."""
    said = []
    while exc is not None:
        frames = [f"{frame.filename}:{frame.lineno}" for frame in reversed(traceback.extract_tb(exc.__traceback__))]
        said.append(" < ".join([type(exc).__name__, *frames[:_FRAMES]]))
        exc = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
    return "; because of ".join(said)
