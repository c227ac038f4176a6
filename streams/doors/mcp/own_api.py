"""The worker's own HTTP API, called within the process on behalf of a tool's caller.

So tools use the API's checks of tokens and values, its waits for writes, its forwarding and its error texts, and none
of this code is written twice. No socket is opened.
"""

from __future__ import annotations

from typing import Any, Self

import httpx
from mcp.server.mcpserver.exceptions import ToolError
from starlette.types import ASGIApp

from streams.doors.http.error_detail import detail_of
from streams.doors.mcp.caller import CALLER


class Refused(ToolError):
    """Raised if the API refuses a request. It has the text of the refusal, and the HTTP status in `status`."""

    def __init__(self, status: int, detail: str) -> None:
        self.status = status
        super().__init__(detail)


class OwnApi:
    """A client of the worker's own API. Close it after use.

    If an unexpected exception occurs, the API logs it and answers 500.
    """

    def __init__(self, api: ASGIApp) -> None:
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(api), base_url="http://127.0.0.1", trust_env=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Send a request to the API, and return the JSON of the response.

        Parameters and body fields that are None are not sent. Raises `Refused` if the API answers with an error.
        """
        for kind in ("params", "json"):
            if kind in options:
                options[kind] = {name: value for name, value in options[kind].items() if value is not None}
        answer = await self._http.request(method, path, headers=CALLER.get().headers, **options)
        if not answer.is_success:
            raise Refused(answer.status_code, detail_of(answer.content))
        said: dict[str, Any] = answer.json()
        return said
