"""Forwarding: the worker that owns the user's partition answers a request.

The owner of a partition is known from the consumer group itself: each member's address comes with the assignment.
While a partition moves, no worker can answer: 503, with `Retry-After`. A forwarded request is not forwarded again.
It carries the caller's own token, and the owner checks that like any other: being forwarded grants no right.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import ceil
from typing import Final

import httpx
from fastapi import Request, Response
from fastapi.responses import JSONResponse

from schemas.errors import NotReady, ShardNotHere
from streams.doors.http.consistency import waits_of
from streams.doors.http.refusals import refused
from streams.memory.read_your_writes import MOST_WAITING

log = logging.getLogger(__name__)

FORWARDED: Final = "x-siltstone-forwarded"
#: Seconds: a retry gets a newer estimate, and the partition may be back earlier than estimated.
LONGEST_RETRY: Final = 60
#: Longer than the owner itself waits for its shards.
WAIT_SECONDS: Final = 15.0
#: Seconds that a request for all workers' numbers waits for one worker.
ASKED_SECONDS: Final = 2.0
#: Connections to one worker: more than the requests that may wait there, see `read_your_writes.py`.
CONNECTIONS: Final = httpx.Limits(max_connections=2 * MOST_WAITING, max_keepalive_connections=20)
#: Response headers that are passed on to the caller.
_KEPT: Final = ("content-disposition", "content-type", "hx-redirect", "location", "retry-after")
_OF_THE_ASKER: Final = ("authorization", "cookie")
#: Headers of one connection, not of the request that it carries.
_HOP_BY_HOP: Final = frozenset(
    {"connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)


#: Headers about the page that sent the request. The worker that received it has checked them with its own address.
_OF_THE_PAGE: Final = frozenset({"origin", "referer", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site"})


class Forwarding:
    """Sends requests to the owners of partitions. `owner` gives the base URL of a partition's worker, if known.

    `reserved` takes a place among the waiting requests: a request that waits at another worker needs one here too.
    """

    def __init__(
        self,
        owner: Callable[[int], str | None],
        own_url: Callable[[], str],
        partitions: int,
        reserved: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._owner, self._own_url, self._partitions, self._reserved = owner, own_url, partitions, reserved
        self._certificates: ssl.SSLContext | None = None
        self._made: dict[str, httpx.AsyncClient] = {}

    def _http(self, url: str) -> httpx.AsyncClient:
        """The client for one worker. Each has its own connections: requests that wait at one do not block the others.

        The machine's certificates are read at the first forwarded request; a lone worker never reads them.
        """
        if url not in self._made:
            if self._certificates is None:
                self._certificates = httpx.create_ssl_context(trust_env=False)
            self._made[url] = httpx.AsyncClient(
                timeout=WAIT_SECONDS, trust_env=False, verify=self._certificates, limits=CONNECTIONS
            )
        return self._made[url]

    async def close(self) -> None:
        for made in self._made.values():
            await made.aclose()

    async def to_owner(self, request: Request, moved: Exception) -> Response:
        """The owner's answer; 503 if no other owner is known, or it does not answer."""
        assert isinstance(moved, ShardNotHere)
        url = self._owner(moved.partition)
        if url is None or url == self._own_url() or FORWARDED in request.headers:
            return later(str(moved))
        try:
            return _passed_on(await self._sent(request, url))
        except NotReady as exc:
            log.info("shard %d: %s", moved.partition, exc)
            return later(f"shard {moved.partition}: {exc}")

    async def to_others(self, request: Request, missing: Exception) -> Response:
        """The first answer of another worker other than 404: a memory that is not here may be there.

        503 if a worker does not answer, since the memory may be on that one.
        """
        try:
            for answer in await self.asked(request):
                if answer.status_code != 404:
                    return _passed_on(answer)
        except NotReady as exc:
            return later(str(exc))
        return JSONResponse({"detail": str(missing)}, 404)

    async def asked(self, request: Request) -> list[httpx.Response]:
        """Each other worker's answer to the same request; empty if another worker has forwarded it.

        Raises `NotReady` if one does not answer, or the owner of a partition is unknown.
        """
        if FORWARDED in request.headers:
            return []
        owners = {self._owner(partition) for partition in range(self._partitions)}
        if None in owners and owners != {None}:
            raise NotReady("partitions are moving; ask again")
        return [await self._sent(request, url) for url in self.others()]

    async def _sent(self, request: Request, url: str) -> httpx.Response:
        """The answer of the worker at `url`. Raises `NotReady` if there is none."""
        headers = {name: value for name, value in request.headers.items() if name not in _HOP_BY_HOP | _OF_THE_PAGE}
        try:
            with self._reserved() if waits_of(request) else nullcontext():
                answer = await self._http(url).request(
                    request.method,
                    url,
                    headers={**headers, FORWARDED: "1"},
                    extensions={"target": _target(url, request)},
                    content=await request.body(),
                    timeout=WAIT_SECONDS + waits_of(request),
                )
        except httpx.HTTPError as exc:
            raise NotReady(f"its worker at {url} does not answer; ask again") from exc
        if answer.status_code == 401:  # this worker knows the token; the other one has not read it yet
            raise NotReady(f"its worker at {url} does not know the token yet; ask again")
        return answer

    def others(self) -> list[str]:
        """The URLs of the group's other workers, as of the last assignment."""
        found = {self._owner(partition) for partition in range(self._partitions)}
        return sorted(url for url in found if url is not None and url != self._own_url())

    async def ask(self, url: str, request: Request, path: str) -> httpx.Response | None:
        """Another worker's own answer at `path`, for our caller; None if the worker does not answer.

        The request carries the caller's own token, so it has the caller's rights.
        """
        asker = {name: request.headers[name] for name in _OF_THE_ASKER if name in request.headers}
        try:
            return await self._http(url).get(f"{url}{path}", headers={**asker, FORWARDED: "1"}, timeout=ASKED_SECONDS)
        except httpx.HTTPError as exc:
            log.info("the worker at %s does not answer: %s", url, type(exc).__name__)
            return None


def _target(url: str, request: Request) -> bytes:
    """The URL's path, then path and query as received. Decoding and encoding would change ids with `%`."""
    query: bytes = request.scope["query_string"]
    path: bytes = httpx.URL(url).raw_path.rstrip(b"/") + request.scope["raw_path"]
    return path + b"?" + query if query else path


def _passed_on(answer: httpx.Response) -> Response:
    kept = {name: answer.headers[name] for name in _KEPT if name in answer.headers}
    return Response(answer.content, answer.status_code, kept)


def later(detail: str, seconds: float = 1.0) -> JSONResponse:
    """503: no worker can answer now. The client may retry after `seconds`, at most a minute."""
    return refused(503, detail, {"Retry-After": retry_after(seconds)})


def retry_after(seconds: float) -> str:
    """The value of `Retry-After`."""
    return str(min(LONGEST_RETRY, max(1, ceil(seconds))))
