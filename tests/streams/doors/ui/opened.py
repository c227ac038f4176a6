"""A worker without a broker, and its dashboard as a browser has it."""

from __future__ import annotations

import re
from collections.abc import Collection
from html.parser import HTMLParser
from typing import Final

import httpx

from schemas.tokens import Scope, TokenRecord, issue
from streams.access.admission import Admission
from streams.access.known_tokens import KnownTokens
from streams.app import Siltstone
from streams.doors.application import build

BASE: Final = "http://127.0.0.1:8000"
AS_A_BROWSER: Final = {"accept": "text/html,application/xhtml+xml", "origin": BASE}


def browser(worker: Siltstone, admission: Admission | None = None) -> httpx.AsyncClient:
    """Keeps cookies, and names its origin with each form, as browsers do; to be closed."""
    api = build(worker.service, worker.forwarding, admission)
    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=BASE, headers=AS_A_BROWSER)


class Doorkeeper:
    """An admission whose tokens are made here."""

    def __init__(self) -> None:
        self._known = KnownTokens(lambda: 0)
        self._known.complete = True
        self.admission = Admission(self._known)

    def token(self, users: str, scopes: Collection[Scope] = tuple(Scope)) -> str:
        """A new one's secret."""
        one = issue()
        self._known.take(
            TokenRecord(
                id=one.id,
                name=f"that of {users}",
                sha256=one.sha256,
                users=tuple(users.split(",")),
                scopes=tuple(scopes),
                created_at=0,
            )
        )
        return one.secret


async def log_in(http: httpx.AsyncClient, secret: str) -> httpx.Response:
    return await http.post("/ui/login", data={"token": secret, "next": "/ui"})


def form_token(page: str) -> str:
    """What the page's forms carry."""
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', page)
    assert found, "there is no form on this page"
    return found[1]


class _Reading(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self._in: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._in:
            while self._in.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._in and self._in[-1] in ("script", "style") and data.strip():
            self.inline.append(data)


def unsafe_parts(page: str) -> list[str]:
    """What our policy forbids, or a text should not have become: inline code, handlers, styles, other hosts."""
    read = _Reading()
    read.feed(page)
    found = [f"inline: {text}" for text in read.inline]
    for tag, attributes in read.tags:
        found += [f"{tag} {name}" for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "href", "action", "hx-get", "data-charts"):
            value = attributes.get(name)
            if value is not None and not value.startswith(("/", "#")):
                found.append(f"{tag} {name}={value}")
    return found
