"""Read your own writes: the parameter `wait=applied` of writes, and the parameter `at_least` of reads.

A write returns a consistency token. A read with that token is answered as soon as the write can be read. The read can
be sent to any worker: it is forwarded to the owner of the user's partition, and the owner waits.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request
from pydantic import BaseModel

from schemas.errors import ConsistencyTokenError
from schemas.ids import Id
from schemas.places import Place
from streams.service import MemoryService

#: The maximum value of `timeout`, in seconds. Clients rarely hold a connection longer for one response.
LONGEST_WAIT: Final = 60.0
#: The maximum number of tokens in one request.
MOST_TOKENS: Final = 64
HEADER: Final = "Siltstone-At-Least"

Timeout = Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="seconds to wait")]


def waits_of(request: Request) -> float:
    """Return the maximum number of seconds that a request waits for writes, in addition to its usual duration."""
    return float(getattr(request.state, "waits", 0.0))


def _wait(
    request: Request,
    wait: Annotated[
        Literal["applied"] | None, Query(description="respond when the write can be read, or after `timeout`")
    ] = None,
    timeout: Timeout = 5.0,
) -> float | None:
    if wait is None:
        return None
    request.state.waits = timeout
    return timeout


#: The maximum number of seconds that a write request waits until the write can be read. None means no wait.
Wait = Annotated[float | None, Depends(_wait)]


class _AtLeast(NamedTuple):
    places: tuple[Place, ...]
    seconds: float


def _at_least(
    request: Request,
    at_least: Annotated[
        str | None, Query(description="consistency tokens, separated by commas; the read waits for their writes")
    ] = None,
    header: Annotated[str | None, Header(alias=HEADER, description="the same as `at_least`")] = None,
    timeout: Timeout = 5.0,
) -> _AtLeast:
    given = [one.strip() for text in (at_least, header) if text for one in text.split(",") if one.strip()]
    if len(given) > MOST_TOKENS:
        raise ConsistencyTokenError(f"at_least: {len(given)} tokens: give at most {MOST_TOKENS}, the newest ones")
    if given:
        request.state.waits = timeout
    return _AtLeast(tuple(map(Place.of_token, given)), timeout)


#: The writes that a read request waits for, and the maximum number of seconds that it waits.
AtLeast = Annotated[_AtLeast, Depends(_at_least)]


class Reached(BaseModel):
    """The writes of the tokens can be read."""

    applied: Literal[True] = True


class Consistency:
    """Makes read requests wait until the writes of their tokens can be read.

    A route declares `reads` as its dependencies:

    @api.get("/v1/memories", dependencies=consistency.reads)
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service

        async def of_user(user_id: Id, asked: AtLeast) -> None:
            await self.reached(user_id, asked)

        self.reads = [Depends(of_user)]

    async def reached(self, user_id: str, asked: AtLeast) -> None:
        """Wait until the writes of the request's tokens can be read.

        This is for routes that get the user in the body. All other routes declare `reads` instead.
        """
        await self._service.writes.has_reached(asked.places, asked.seconds, user_id)


def consistency_routes(service: MemoryService) -> APIRouter:
    """`/v1/applied`."""
    api = APIRouter(tags=["operations"])

    @api.get("/v1/applied")
    async def applied(asked: AtLeast) -> Reached:
        """Respond 200 as soon as the writes of the tokens can be read.

        If this takes longer than `timeout`, respond 503 with `Retry-After`. All tokens must be of one partition: for
        instance, tokens of one user's writes.
        """
        if not asked.places:
            raise ConsistencyTokenError("at_least: give a consistency token")
        if len({place.partition for place in asked.places}) > 1:
            raise ConsistencyTokenError("at_least: the tokens are of several partitions: send one request for each")
        await service.writes.has_reached(asked.places, asked.seconds)
        return Reached()

    return api
