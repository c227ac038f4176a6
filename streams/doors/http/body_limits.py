"""Limits of a request body: its content type, its size, and the time it may take to arrive.

A request that changes something must declare JSON as its content type, even without a body. This protects against web
pages of other sites. Browsers let such a page send forms and plain text to any server, but they send JSON only if the
server permits it first. The size and the time are checked while the app reads the body.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.doors.http.policies import policies_of
from streams.doors.http.refusals import refused

MAX_BODY_BYTES: Final = 8 << 20
#: The maximum number of seconds between the app's first read of the body and the arrival of the whole body.
BODY_SECONDS: Final = 30.0
#: Prefixes of the paths that accept form data as well as JSON. The dashboard's pages send forms.
FORMS: Final = ("/ui/",)
_FORM: Final = b"application/x-www-form-urlencoded"
_CLOSE: Final = (b"connection", b"close")
#: The key of the parsed body in the state of a request.
_VALUE: Final = "siltstone.body"


class Bodies:
    """ASGI middleware that refuses a body if it is not JSON (415), is too large (413), or arrives too late (408).

    If the app did not read the whole body, the connection is closed after the response, so that the server does not
    have to read the rest.
    """

    def __init__(self, app: ASGIApp, most: int = MAX_BODY_BYTES, seconds: float = BODY_SECONDS) -> None:
        self._app, self._most, self._seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive, self._most, self._seconds)

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start" and not body.is_read:
                message = {**message, "headers": [*message.get("headers", ()), _CLOSE]}
            await send(message)

        try:
            body.refuse()
            await self._app(scope, body.receive, answered)
        except HTTPException as exc:
            await refused(exc.status_code, exc.detail)(scope, receive, answered)


def with_body(scope: Scope, receive: Receive, content: bytes, value: Any = None) -> tuple[Scope, Receive]:
    """Return the request with `content` as its body. The original body must already have been read.

    If `value`, the JSON value of `content`, is given, inner layers get it from `value_of` and do not parse it again.
    """
    headers = [
        (name, value) for name, value in scope["headers"] if name not in (b"content-length", b"transfer-encoding")
    ]
    if content:
        headers.append((b"content-length", str(len(content)).encode()))
    first: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return {**scope, "headers": headers, "state": {**scope.get("state", {}), _VALUE: value}}, again


def value_of(scope: Scope) -> Any:
    """The JSON value of the request's body, if an outer layer has parsed it; otherwise None."""
    return scope.get("state", {}).get(_VALUE)


class _Body:
    """The body of one request. `is_read` is true when the app has received the whole body."""

    def __init__(self, scope: Scope, receive: Receive, most: int, seconds: float) -> None:
        self._receive, self._most, self._seconds = receive, most, seconds
        self._size, self._deadline = 0, 0.0
        headers = dict(scope["headers"])
        self._length, self._type = headers.get(b"content-length"), headers.get(b"content-type", b"")
        self._method, self._path = scope["method"], scope["path"]
        self.is_read = self._length in (None, b"0") and b"transfer-encoding" not in headers

    def refuse(self) -> None:
        """Check the length and the content type in the headers, before the body is read. Raises `HTTPException`."""
        if self._length is not None and len(self._length) < 20 and int(self._length) > self._most:
            raise self._too_large()
        has_body = not self.is_read
        if self._method not in ("POST", "PATCH") and not (self._method == "PUT" and has_body):
            return
        if not any(policies_of(self._method, self._path)):
            return  # no route matches, so the request gets 404 or 405 later
        kind = self._type.partition(b";")[0].strip().lower()
        if kind == b"application/json" or (kind == _FORM and self._path.startswith(FORMS)):
            return
        raise HTTPException(415, "Content-Type: send application/json, even without a body")

    async def receive(self) -> Message:
        """Receive the next ASGI message. Raises `HTTPException` if the body is too large or arrives too late."""
        if self.is_read:
            return await self._receive()
        now = asyncio.get_running_loop().time()
        self._deadline = self._deadline or now + self._seconds
        try:
            async with asyncio.timeout(self._deadline - now):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"the body did not arrive within {self._seconds:g} seconds") from None
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            if self._size > self._most:
                raise self._too_large()
            self.is_read = not message.get("more_body", False)
        return message

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body is larger than {self._most} bytes")
