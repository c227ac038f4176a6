"""The doctor's check of MCP: does a running worker accept requests to `/mcp` under the host names of the settings?"""

from __future__ import annotations

import asyncio

import httpx

from schemas.settings import Settings
from streams.doctor.finding import Finding, failed, ok
from streams.doctor.http import ANSWER_SECONDS
from streams.doors.http.hosts import names_of

CHECK = "mcp"
RESTART = "restart the worker with these settings"
_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
#: The HTTP status with which a worker refuses a host name that is not its own.
_MISDIRECTED = 421


async def check_mcp(settings: Settings) -> list[Finding]:
    """Send an MCP ping to the worker under each host name. Only the HTTP statuses 404 and 421 are failures.

    Any other status means that the worker accepts the host name, even if it refuses the ping without a token.
    """
    http = settings.http
    hosts = sorted(map(_as_host, names_of(http, settings.access.tokens)))
    if not http.mcp:
        return [ok(CHECK, "not served: http.mcp is false")]
    served = f"served at /mcp to requests for {', '.join(hosts)}; allow other hosts with http.allowed_hosts"
    found = [ok(CHECK, served if hosts else "served at /mcp under any host name, to callers with a token")]
    base = f"http://{_as_host(http.host)}:{http.port}"
    async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=ANSWER_SECONDS) as client:
        asked = hosts or [_as_host(http.host)]
        pings = (client.post("/mcp", json=_PING, headers={"Host": f"{host}:{http.port}"}) for host in asked)
        try:
            answers = await asyncio.gather(*pings)
        except (httpx.HTTPError, httpx.InvalidURL):
            return found  # the check `http` reports whether a worker listens
    for host, answer in zip(asked, answers, strict=True):
        if answer.status_code == _MISDIRECTED:
            return [failed(CHECK, f"the running worker refuses requests for {host}", RESTART)]
        if answer.status_code == httpx.codes.NOT_FOUND:
            return [failed(CHECK, "the running worker serves no MCP", RESTART)]
    return found


def _as_host(name: str) -> str:
    """Return a host name in the form of `Host` headers and URLs, in which an IPv6 address is in brackets."""
    return f"[{name}]" if ":" in name else name
