"""Check the content of a request before a route reads it.

The body must be strict JSON. NaN and numbers outside the range of a double are refused. Python's parser accepts them,
but they are not JSON and cannot be written to the log. An unpaired surrogate cannot be written either, so it is
replaced by U+FFFD, as at all other entry points.

A request, or each entry of a list in its body, may name only one user. If it named two users, the guard and the route
could each use a different one.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.halves import mended
from streams.doors.http.body_limits import value_of, with_body
from streams.doors.http.policies import USER_NAMES
from streams.doors.http.refusals import refused

NO_JSON: Final = "the body is not JSON (NaN and numbers outside a double's range are not allowed)"
SEVERAL: Final = "user_id: name one user, once"
_JSON: Final = b"application/json"


class Plain:
    """ASGI middleware behind the guard. It answers 422 if the body is not JSON, or if the request names two users."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        named = [value for name, value in query if name in USER_NAMES]
        if len(named) > 1:
            await refused(422, SEVERAL)(scope, receive, send)
            return
        kind = dict(scope["headers"]).get(b"content-type", b"")
        if kind.partition(b";")[0].strip().lower() != _JSON:
            await self._app(scope, receive, send)
            return
        said = value_of(scope)
        if said is None:
            messages = await _all_of(receive)
            content = b"".join(message.get("body", b"") for message in messages)
            whole = content
            if messages[-1]["type"] == "http.request" and content:
                try:
                    said, whole = mended(content)
                except orjson.JSONDecodeError:
                    await refused(422, NO_JSON)(scope, receive, send)
                    return
            if whole is content:
                receive = _again(messages, receive)
            else:
                scope, receive = with_body(scope, receive, whole)
        if not _one_user(said, named):
            await refused(422, SEVERAL)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _one_user(said: Any, named: list[str]) -> bool:
    for entry in said if isinstance(said, list) else [said]:
        if not isinstance(entry, dict):
            continue
        inside = [entry[name] for name in USER_NAMES if entry.get(name) is not None]
        if len(inside) > 1 or any(user != named[0] for user in inside if named):
            return False
    return True


async def _all_of(receive: Receive) -> list[Message]:
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False):
        messages.append(await receive())
    return messages


def _again(messages: list[Message], receive: Receive) -> Receive:
    waiting = iter(messages)

    async def next_one() -> Message:
        return next(waiting, None) or await receive()

    return next_one
