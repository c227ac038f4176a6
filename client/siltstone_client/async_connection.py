"""The client's connection for asyncio. `make client` writes the synchronous one, `connection.py`, from it."""

from __future__ import annotations

from typing import Self, TypeVar

import httpx
from tenacity import AsyncRetrying

from siltstone_client.answering import answer_of, unanswered
from siltstone_client.answers import Answer
from siltstone_client.calls import Call
from siltstone_client.connecting import client_options, request_options
from siltstone_client.own_writes import OwnWrites
from siltstone_client.retrying import Retries

T = TypeVar("T", bound=Answer)


class AsyncConnection:
    """Makes calls to a worker, and repeats those that failed. `AsyncMemory` describes the options."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: Retries = Retries(),  # noqa: B008 - frozen
        read_your_writes: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(**client_options(url, token, timeout), transport=transport)
        self._timeout, self._retries = timeout, retries
        self._own = OwnWrites() if read_your_writes else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._http.aclose()

    async def _answer(self, call: Call[T]) -> T:
        async def attempt() -> T:
            return await self._once(call)

        answer: T = await AsyncRetrying(**self._retries.options(call.again))(attempt)
        return answer

    async def _once(self, call: Call[T]) -> T:
        try:
            response = await self._http.request(
                call.method, call.path, **request_options(call, self._timeout, self._own)
            )
        except (httpx.RequestError, httpx.InvalidURL) as exc:
            raise unanswered(self._http.base_url, exc) from exc
        return answer_of(call, response, self._own)
