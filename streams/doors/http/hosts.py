"""Check the `Host` of a request and the page that sent it, so that pages of other sites cannot use a worker.

Any web page can make its reader's browser send requests to loopback. If the page's own host name resolves to loopback
(DNS rebinding), the page can also read the answers. Therefore `Host` must be a name of this worker, and the page that
the browser names (in `Origin` or `Sec-Fetch-Site`) must be a page of this worker. Programs that are not browsers name
no page.

If tokens are required, the worker may be behind a proxy. Then any `Host` is accepted, unless `http.allowed_hosts` is
set. A request with a token in `Authorization` may come from any page. All other requests, for instance a login or a
request with a cookie, must still come from a page of this worker.

A new route needs no change here: pages of this worker may request it, and pages of other sites may not. `ENTRANCES`
lists the pages to which other sites may link. They show no data.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from schemas.settings import HttpSettings
from schemas.settings.oidc import LOOPBACK
from streams.doors.http.refusals import refused

#: Pages to which any site may link.
ENTRANCES: Final = frozenset({"/docs", "/redoc", "/ui", "/ui/"})
_OUR_SITES: Final = frozenset({b"same-origin", b"none"})


def names_of(http: HttpSettings, tokens: bool) -> frozenset[str]:
    """Return the accepted host names, without ports. An empty set means that all host names are accepted.

    All are accepted if requests need a token and `http.allowed_hosts` is not set.
    """
    if tokens and not http.allowed_hosts:
        return frozenset()
    return LOOPBACK | frozenset(map(str.lower, (*http.own_names, *http.allowed_hosts)))


class Hosts:
    """ASGI middleware that checks the host of each request, and the page that sent the request.

    `tokens` is true if the worker requires tokens.
    """

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
        """Return whether a page of another site sent the request.

        Browsers set `Sec-Fetch-Site`, and pages cannot change it. Older browsers send only `Origin`, and only with
        writes.
        """
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
    """Return whether the browser followed a link to one of the `ENTRANCES`."""
    return (
        scope["method"] == "GET"
        and scope["path"] in ENTRANCES
        and headers.get(b"sec-fetch-mode") == [b"navigate"]
        and headers.get(b"sec-fetch-dest") == [b"document"]
    )


def _site(origin: bytes) -> str:
    """Return the host and port in an `Origin` header, or an empty text if the header has no host.

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
    """Return the host name without its port, or an empty text if `host` is not a valid host.

    >>> _name(b"[::1]:8000"), _name(b"LocalHost"), _name(b"a.example:b")
    ('::1', 'localhost', '')
    """
    try:
        split = urlsplit(f"//{_text(host)}")
        if split.path or split.query or split.fragment or split.username is not None:
            return ""
        split.port  # noqa: B018 - raises if the port is not a number
        return (split.hostname or "").rstrip(".")
    except ValueError:
        return ""
