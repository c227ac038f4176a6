"""The middleware in front of the dashboard's pages, and the headers of their responses.

The middleware copies the token from a request's cookie into the header that the guard reads. It adds headers to the
responses, so that a browser loads only the dashboard's own files, runs no inline scripts, and does not show the page
in a frame of another site. If a request is refused, the browser gets a page with the reason, or the login page.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import orjson
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.doors.http.forwarding import FORWARDED
from streams.doors.http.unforeseen import Unforeseen
from streams.doors.ui.pages import Pages
from streams.doors.ui.session import COOKIE, anonymous, cookie, header_of, held

HOME: Final = "/ui"
#: The address that redirects to the first screen that the viewer may see.
START: Final = "/ui/start"
LOGIN: Final = "/ui/login"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
#: The referrer policy allows referrers within the site. Without them, browsers would not send the origin of a form,
#: and forms of other sites could not be detected.
HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_NO_STORE: Final = (b"cache-control", b"no-store")


class Door:
    """ASGI middleware for the pages under `/ui`. `tokens` is true if the API requires tokens."""

    def __init__(self, app: ASGIApp, tokens: bool) -> None:
        self._plain, self._app, self._pages, self._tokens = app, Unforeseen(app), Pages(), tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_page(scope["path"]):
            await self._plain(scope, receive, send)
            return
        secret, new = held(scope), ""
        forwarded = FORWARDED.encode() in dict(scope["headers"])
        if not (secret or self._tokens or forwarded or scope["path"] == HOME):
            secret = new = anonymous()
        sending = self._sending(scope, receive, send, new)
        await self._app(_with(scope, secret, new, self._tokens), receive, sending)

    def _sending(self, scope: Scope, receive: Receive, send: Send, new: str) -> Send:
        """Return a `send` that adds `HEADERS`, and that replaces the JSON of a failure by a page for browsers."""
        shows = _shows_pages(scope)
        failed: list[tuple[int, bytes]] = []
        body = bytearray()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], *HEADERS]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(_NO_STORE)
                if new:
                    headers.append((b"set-cookie", cookie(new, scope["scheme"] == "https").encode()))
                message = {**message, "headers": headers}
                kind = dict(message["headers"]).get(b"content-type", b"")
                if shows and message["status"] >= 400 and kind.startswith(b"application/json"):
                    failed.append((message["status"], dict(message["headers"]).get(b"retry-after", b"")))
                    return
            if failed:
                body.extend(message.get("body", b""))
                if message.get("more_body", False):
                    return
                (status, again) = failed.pop()
                answer = self._instead(scope, status, again.decode(), bytes(body))
                for name, value in (*HEADERS, _NO_STORE):
                    answer.headers[name.decode()] = value.decode()
                await answer(scope, receive, send)
                return
            await send(message)

        return sending

    def _instead(self, scope: Scope, status: int, again: str, body: bytes) -> Response:
        """Return the page for a failure: the login page if the status is 401, or else a page with the reason."""
        by_htmx = header_of(scope, b"hx-request") == "true"
        if status == 401:
            if by_htmx:
                return Response(status_code=200, headers={"hx-redirect": LOGIN})
            where = scope["path"] if scope["method"] == "GET" else START
            query = scope["query_string"].decode("latin-1")
            wanted = f"{where}?{query}" if query and where != START else where
            return RedirectResponse(f"{LOGIN}?next={quote(wanted, safe='')}", 303)
        detail = _detail(body)
        if by_htmx:
            return HTMLResponse(self._pages.fragment("failure.html", detail=detail), status)
        headers = {"retry-after": again} if again else None
        return HTMLResponse(self._pages.fragment("failed.html", status=status, detail=detail), status, headers)


def _is_page(path: str) -> bool:
    return path == HOME or path.startswith(f"{HOME}/")


def _shows_pages(scope: Scope) -> bool:
    """Return whether a browser shows the response as a page.

    Other workers and the dashboard's own script read JSON instead.
    """
    return "text/html" in header_of(scope, b"accept") or header_of(scope, b"hx-request") == "true"


def _with(scope: Scope, secret: str, new: str, tokens: bool) -> Scope:
    """Return the request with the cookie's token in the header `Authorization`, which the guard reads.

    If the cookie is new, it is added to the request as if the browser had sent it.
    """
    headers = list(scope["headers"])
    if secret and tokens:
        headers = [one for one in headers if one[0] != b"authorization"]
        headers.append((b"authorization", f"Bearer {secret}".encode("latin-1", "replace")))
    if new:
        headers = [one for one in headers if one[0] != b"cookie"]
        headers.append((b"cookie", f"{COOKIE}={new}".encode()))
    return {**scope, "headers": headers}


def _detail(body: bytes) -> str:
    """Return the text in the field `detail` of a failure's JSON, or a general text if there is none."""
    try:
        detail = orjson.loads(body)["detail"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "the worker's log says more"
    return str(detail)
