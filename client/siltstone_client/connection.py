"""The synchronous connection. `make client` writes it from `async_connection.py`: edit that file."""

from __future__ import annotations

from typing import Self, TypeVar

import httpx
from tenacity import Retrying

from siltstone_client.answering import answer_of, unanswered
from siltstone_client.answers import Answer
from siltstone_client.calls import Call
from siltstone_client.connecting import client_options, request_options
from siltstone_client.own_writes import OwnWrites
from siltstone_client.retrying import Retries

T = TypeVar("T", bound=Answer)


class Connection:
    """Makes calls to a worker, and repeats those that failed. `AsyncMemory` describes the options."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: Retries = Retries(),  # noqa: B008 - frozen
        read_your_writes: bool = False,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(**client_options(url, token, timeout), transport=transport)
        self._timeout, self._retries = timeout, retries
        self._own = OwnWrites() if read_your_writes else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        self._http.close()

    def _answer(self, call: Call[T]) -> T:
        def attempt() -> T:
            return self._once(call)

        answer: T = Retrying(**self._retries.options(call.again))(attempt)
        return answer

    def _once(self, call: Call[T]) -> T:
        try:
            response = self._http.request(call.method, call.path, **request_options(call, self._timeout, self._own))
        except (httpx.RequestError, httpx.InvalidURL) as exc:
            raise unanswered(self._http.base_url, exc) from exc
        return answer_of(call, response, self._own)
