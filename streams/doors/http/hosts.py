"""Check a request's `Host` and the site of the page that sent it, so that no other site's page can ask a worker.

Any web page can make its reader's browser send requests to loopback. If the page's own host name resolves to loopback
(DNS rebinding), it can read the answers as well. Hence `Host` must be a name of this worker, and the page that the
browser names (`Origin`, `Sec-Fetch-Site`) must be one of ours. Programs other than browsers name no page.

If tokens are required, a proxy may stand before the worker: any `Host` will do unless `http.allowed_hosts` names
some. A request with a token in `Authorization` may then come from any page. All other requests, for instance with a
cookie or to log in, must still come from a page of ours.

A new route needs nothing here: pages of ours may request it, other sites' pages may not. Pages that show no data, so
that other sites may link to them, are listed in `ENTRANCES`.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from schemas.settings import HttpSettings
from schemas.settings.oidc import LOOPBACK
from streams.doors.http.refusals import refused

#: Pages that a link from anywhere may lead to.
ENTRANCES: Final = frozenset({"/docs", "/redoc", "/ui", "/ui/"})
_OUR_SITES: Final = frozenset({b"same-origin", b"none"})


def names_of(http: HttpSettings, tokens: bool) -> frozenset[str]:
    """The host names of a worker, without ports. Empty: any name will do, because requests carry a token."""
    if tokens and not http.allowed_hosts:
        return frozenset()
    return LOOPBACK | frozenset(map(str.lower, (*http.own_names, *http.allowed_hosts)))


class Hosts:
    """ASGI middleware. `tokens`: whether the worker requires them."""

    def __init__(self, app: ASGIApp, http: HttpSettings, tokens: bool) -> None:
        self._app, self._tokens = app, tokens
        self._names = names_of(http, tokens)
        self._allowed = frozenset(map(str.lower, http.allowed_hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers: dict[bytes, list[bytes]] = {}
            for name, value in scope["headers"]:
                headers.setdefault(name, []).append(value)
            if self._names and not self._ours(headers.get(b"host", [])):
                answer = refused(
                    421, "Host: not a name of this worker; if it should be, add it to http.allowed_hosts"
                )
                await answer(scope, receive, send)
                return
            by_token = self._tokens and b"authorization" in headers
            if not by_token and self._foreign(scope, headers):
                answer = refused(
                    403, "Origin: a page of another site sent this; to allow it, add its host to http.allowed_hosts"
                )
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _ours(self, hosts: list[bytes]) -> bool:
        return len(hosts) == 1 and _name(hosts[0]) in self._names

    def _foreign(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> bool:
        """True for foreign pages, which cannot set `Sec-Fetch-Site`; older browsers send `Origin` with writes."""
        sites, origins = headers.get(b"sec-fetch-site", []), headers.get(b"origin", [])
        if any(self._is_allowed(origin) for origin in origins):
            return len(origins) > 1
        if sites:
            return not _OUR_SITES.issuperset(sites) and not _enters(scope, headers)
        hosts = headers.get(b"host", [])
        return any(_site(origin) != _text(host).lower() for origin in origins for host in hosts)

    def _is_allowed(self, origin: bytes) -> bool:
        return _name(_text(origin).partition("://")[2].encode("latin-1")) in self._allowed


def _enters(scope: Scope, headers: dict[bytes, list[bytes]]) -> bool:
    """Whether the browser followed a link to one of the `ENTRANCES`."""
    return (
        scope["method"] == "GET"
        and scope["path"] in ENTRANCES
        and headers.get(b"sec-fetch-mode") == [b"navigate"]
        and headers.get(b"sec-fetch-dest") == [b"document"]
    )


def _site(origin: bytes) -> str:
    """Host and port of a page; empty if the origin is no page.

    >>> _site(b"https://Here:8000"), _site(b"null"), _site(b"http://[")
    ('here:8000', '', '')
    """
    try:
        return urlsplit(_text(origin)).netloc.lower()
    except ValueError:
        return ""


def _text(value: bytes) -> str:
    return value.decode("latin-1")


def _name(host: bytes) -> str:
    """The name in a host with or without a port; empty if it is no host.

    >>> _name(b"[::1]:8000"), _name(b"LocalHost"), _name(b"a.example:b")
    ('::1', 'localhost', '')
    """
    try:
        split = urlsplit(f"//{_text(host)}")
        if split.path or split.query or split.fragment or split.username is not None:
            return ""
        split.port  # noqa: B018 - raises where it is no number
        return (split.hostname or "").rstrip(".")
    except ValueError:
        return ""
