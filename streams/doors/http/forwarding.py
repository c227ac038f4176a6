"""Forward a request to the worker that owns the user's partition.

Each worker knows all owners, because the assignment of the consumer group contains the address of each member. While
a partition moves, no worker can answer, so the response is 503 with `Retry-After`. A forwarded request is not
forwarded again. It carries the caller's own token, and the owner checks this token as in any other request. So
forwarding gives the caller no additional rights.
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
#: The maximum value of `Retry-After`, in seconds. The recovery may be faster than estimated, and each retry gets a
#: new estimate.
LONGEST_RETRY: Final = 60
#: The maximum number of seconds to wait for the response of a partition's owner. The owner itself waits a shorter
#: time for its shards.
WAIT_SECONDS: Final = 15.0
#: The maximum number of seconds to wait for one worker's response while data of all workers is collected.
ASKED_SECONDS: Final = 2.0
#: The limits of the connections to one worker. There are more connections than requests that may wait on a worker
#: (see `read_your_writes.py`), so that other requests still get a connection.
CONNECTIONS: Final = httpx.Limits(max_connections=2 * MOST_WAITING, max_keepalive_connections=20)
#: Response headers that are passed on to the caller.
_KEPT: Final = ("content-disposition", "content-type", "hx-redirect", "location", "retry-after")
_OF_THE_ASKER: Final = ("authorization", "cookie")
#: Headers that apply to one connection only. They are not forwarded.
_HOP_BY_HOP: Final = frozenset(
    {"connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)


#: Headers about the web page that sent the request. They are not forwarded: the first worker has already checked
#: them against its own address, and the check would fail at the owner, which has another address.
_OF_THE_PAGE: Final = frozenset({"origin", "referer", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site"})


class Forwarding:
    """Sends requests to the owners of partitions.

    `owner` returns the base URL of the worker that owns a partition, or None if the owner is unknown. `reserved`
    reserves one of the limited places for waiting requests. It is needed because a request that waits on another
    worker also holds a connection to this worker.
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
        """Return the HTTP client for the worker at `url`.

        Each worker has a client with its own connections, so that requests that wait for one worker do not block
        requests to other workers. The machine's certificates are read at the first forwarded request. A worker that
        is alone in its group never reads them.
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
        """Return the response of the partition's owner.

        Return 503 if the owner is unknown or does not answer, or if another worker has already forwarded the request.
        """
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
        """Ask the other workers for a memory that this worker does not have. Return the first answer that is not 404.

        If no worker has the memory, return 404. If a worker does not answer, return 503, because that worker may have
        the memory.
        """
        try:
            for answer in await self.asked(request):
                if answer.status_code != 404:
                    return _passed_on(answer)
        except NotReady as exc:
            return later(str(exc))
        return JSONResponse({"detail": str(missing)}, 404)

    async def asked(self, request: Request) -> list[httpx.Response]:
        """Send the same request to all other workers, and return their answers.

        If this request was itself forwarded by another worker, return an empty list. Raises `NotReady` if a worker
        does not answer, or if the owners of only some partitions are known.
        """
        if FORWARDED in request.headers:
            return []
        owners = {self._owner(partition) for partition in range(self._partitions)}
        if None in owners and owners != {None}:
            raise NotReady("partitions are moving; ask again")
        return [await self._sent(request, url) for url in self.others()]

    async def _sent(self, request: Request, url: str) -> httpx.Response:
        """Send the request to the worker at `url`, and return the response.

        Raises `NotReady` if that worker does not answer, or does not know the caller's token yet.
        """
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
        if answer.status_code == 401:  # this worker has accepted the token, so the other worker has not read it yet
            raise NotReady(f"its worker at {url} does not know the token yet; ask again")
        return answer

    def others(self) -> list[str]:
        """Return the URLs of the other workers in the consumer group, according to the last assignment."""
        found = {self._owner(partition) for partition in range(self._partitions)}
        return sorted(url for url in found if url is not None and url != self._own_url())

    async def ask(self, url: str, request: Request, path: str) -> httpx.Response | None:
        """Request `path` from the worker at `url` on behalf of the caller, and return the response.

        Return None if the worker does not answer. The new request carries the caller's token or cookie, so it has the
        caller's rights.
        """
        asker = {name: request.headers[name] for name in _OF_THE_ASKER if name in request.headers}
        try:
            return await self._http(url).get(f"{url}{path}", headers={**asker, FORWARDED: "1"}, timeout=ASKED_SECONDS)
        except httpx.HTTPError as exc:
            log.info("the worker at %s does not answer: %s", url, type(exc).__name__)
            return None


def _target(url: str, request: Request) -> bytes:
    """Return the target of a forwarded request: the path of `url`, then the received path and query, byte for byte.

    If the path and the query were decoded and encoded again, ids that contain `%` would change.
    """
    query: bytes = request.scope["query_string"]
    path: bytes = httpx.URL(url).raw_path.rstrip(b"/") + request.scope["raw_path"]
    return path + b"?" + query if query else path


def _passed_on(answer: httpx.Response) -> Response:
    kept = {name: answer.headers[name] for name in _KEPT if name in answer.headers}
    return Response(answer.content, answer.status_code, kept)


def later(detail: str, seconds: float = 1.0) -> JSONResponse:
    """Return the response 503 with the text `detail`, for a request that no worker can answer now.

    The header `Retry-After` has the number of `seconds`, but at most `LONGEST_RETRY`.
    """
    return refused(503, detail, {"Retry-After": retry_after(seconds)})


def retry_after(seconds: float) -> str:
    """Return the value of the header `Retry-After`: whole seconds, at least 1 and at most `LONGEST_RETRY`."""
    return str(min(LONGEST_RETRY, max(1, ceil(seconds))))
