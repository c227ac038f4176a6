"""The guard in front of all routes checks whether the caller's token allows this request about this user.

The check runs before the request is processed or forwarded. If the token is of one user, the request may omit the
user. Then the guard adds the user to the request, so that a forwarded request also names the user. If the token is of
several users, each user that the request names must be one of them. Other data of a request, such as its metadata,
never identifies a user.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from schemas.errors import AccessDenied, NotReady
from schemas.halves import read_json
from streams.access.admission import Admission
from streams.access.authorize import Principal, authorize, require, require_any
from streams.doors.http.asker import with_asker
from streams.doors.http.body_limits import with_body
from streams.doors.http.failures import answer_to
from streams.doors.http.policies import USER_NAMES, About, Policy, methods_of, policies_of
from streams.doors.http.refusals import refused
from streams.memory.read_your_writes import asked_by

UNNAMED: Final = "user_id: name a user, one of the token's users"


class _Unreadable(Exception):
    """Raised if the guard cannot check a request. The response has this `status` and these `headers`."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        self.status, self.headers = status, headers
        super().__init__(detail)


class Guard:
    """ASGI middleware that checks the token of each request.

    If `open_probes` is true, `/healthz`, `/readyz` and `/metrics` need no token.
    """

    def __init__(self, app: ASGIApp, admission: Admission, open_probes: bool) -> None:
        self._app, self._admission, self._open_probes = app, admission, open_probes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            scope, receive = await self._admitted(scope, receive)
        except (AccessDenied, NotReady) as exc:
            await answer_to(exc)(scope, receive, send)
            return
        except _Unreadable as exc:
            await refused(exc.status, str(exc), exc.headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _admitted(self, scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
        policies = list(policies_of(scope["method"], scope["path"]))
        if policies and all(self._is_open(policy) for policy in policies):
            return scope, receive
        principal = await self._admission.asking(scope["headers"])
        if not policies:
            if methods := methods_of(scope["path"]):
                raise _Unreadable(
                    405, "this address does not allow this method; Allow lists the methods", Allow=methods
                )
            raise _Unreadable(404, "there is nothing at this address")
        for policy in policies:
            scope, receive = await _allowed(principal, policy, scope, receive)
        asked_by.set(principal.name)  # set for the current request only, because each request has its own task
        return with_asker(scope, principal), receive

    def _is_open(self, policy: Policy) -> bool:
        return policy.about is About.PUBLIC or (policy.about is About.PROBE and self._open_probes)


async def _allowed(principal: Principal, policy: Policy, scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
    """Check the request against the policy of its route, and return the request for the next layer.

    If the token is of one user and the request names no user, the returned request names that user. Raises
    `AccessDenied` if the token does not allow the request, and `_Unreadable` if the request cannot be checked.
    """
    if policy.about in (About.PROBE, About.ANYBODY):
        return scope, receive
    if policy.about is About.SCOPED:
        require_any(principal)
        return scope, receive
    if policy.about is About.FOUND:
        require(principal, policy.scope)
        return scope, receive
    if policy.about is About.ALL:
        authorize(principal, None, policy.scope)
        return scope, receive
    if principal.users is None:
        authorize(principal, None, policy.scope)
        return scope, receive
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    named = [value for name, value in query if name in USER_NAMES]
    content = b"" if policy.about is About.PAGE else await _body(receive)
    body = _parsed(content) if content else None
    entries = body if isinstance(body, list) else [body]
    for entry in entries:
        inside = [entry[name] for name in USER_NAMES if name in entry] if isinstance(entry, dict) else []
        if policy.about is About.BODY and isinstance(entry, dict) and not inside:
            inside = [_only(principal)]
            entry["user_id"] = inside[0]
        named += inside
    if not named:
        named = [_only(principal)]
        if policy.about in (About.QUERY, About.PAGE):
            scope = {**scope, "query_string": urlencode([*query, ("user_id", named[0])]).encode("latin-1")}
    for user in named:
        if not isinstance(user, str):
            raise _Unreadable(422, "user_id: must be text")
        authorize(principal, user, policy.scope)
    if policy.about is About.PAGE:
        return scope, receive
    return with_body(scope, receive, content if body is None else orjson.dumps(body), body)


def _only(principal: Principal) -> str:
    if principal.only_user is None:
        raise _Unreadable(422, UNNAMED)
    return principal.only_user


async def _body(receive: Receive) -> bytes:
    parts = list[bytes]()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Unreadable(400, "the request ended before its body was complete")
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _parsed(content: bytes) -> Any:
    """Parse the JSON body of a request. Raises `_Unreadable` if the body is not JSON.

    The guard replaces the received body by the parsed body, so that the route reads exactly the users that the guard
    has checked.
    """
    try:
        return read_json(content)
    except orjson.JSONDecodeError as exc:
        raise _Unreadable(422, "the body is not JSON") from exc
