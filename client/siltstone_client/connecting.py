"""The options that the synchronous and the asynchronous client share: the address, the token and the time limits."""

from __future__ import annotations

import re
from typing import Any, Final

import httpx

from siltstone_client.calls import WAIT_SECONDS, Call
from siltstone_client.messages import as_json
from siltstone_client.own_writes import OwnWrites
from siltstone_client.version import VERSION

#: The characters that a token may have. httpx refuses other characters as well, but its error would quote the token.
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


def client_options(url: str, token: str | None, timeout: float) -> dict[str, Any]:
    """The options for httpx's client. Raises `ValueError` for a bad URL or token, and never quotes the token."""
    base = httpx.URL(url)
    if base.scheme not in ("http", "https") or not base.host:
        raise ValueError(f"url: {url!r}: give it as http://host:port")
    headers = {"User-Agent": f"siltstone-client/{VERSION}"}
    if token is not None:
        if not _TOKEN.fullmatch(token):
            raise ValueError(
                "token: has characters that are not allowed in a token: remove spaces and line breaks around it"
            )
        headers["Authorization"] = f"Bearer {token}"
    return {"base_url": base, "headers": headers, "timeout": httpx.Timeout(timeout), "follow_redirects": False}


def request_options(call: Call[Any], timeout: float, own: OwnWrites | None) -> dict[str, Any]:
    """The httpx options for one request.

    The read timeout includes the time that the worker waits for writes, including the client's `own` earlier writes.
    """
    own_headers = {} if own is None else own.headers(call)
    waits = max(call.waits, WAIT_SECONDS) if own_headers else call.waits
    options: dict[str, Any] = {"params": call.params, "timeout": httpx.Timeout(timeout, read=timeout + waits)}
    if call.body is None:
        return {**options, "headers": own_headers}
    headers = {**own_headers, "Content-Type": "application/json"}
    return {**options, "headers": headers, "content": as_json(call.body)}
