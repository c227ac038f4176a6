"""Responses to writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Self

from pydantic import BaseModel, Field

from schemas.events import LongTermEvent
from schemas.fields import absent
from schemas.places import Place
from streams.service import MemoryService


class Written(BaseModel):
    """A write is in the log, and takes effect within moments. A request with `wait=applied` waits for the effect."""

    token: str | None = Field(
        description="consistency token: pass it as `at_least` to read this write; null if nothing was written"
    )
    applied: bool | None = Field(
        default=None,
        exclude_if=absent,
        description="only with `wait=applied`: whether the write can be read now; if false, do not write again, "
        "but read with `at_least`",
    )


class Accepted(Written):
    """A write is in the log. `topic`, `partition` and `offset` are its place."""

    event_id: str
    topic: str
    partition: int
    offset: int

    @classmethod
    def at(cls, place: Place, event_id: str, applied: bool | None = None) -> Self:
        return cls(event_id=event_id, **place._asdict(), token=place.token, applied=applied)

    @classmethod
    async def written(cls, service: MemoryService, event: LongTermEvent, wait: float | None = None) -> Self:
        return await cls.after(service, event.user_id, str(event.event_id), wait, lambda: service.writes.write(event))

    @classmethod
    async def after(
        cls,
        service: MemoryService,
        user_id: str,
        event_id: str,
        wait: float | None,
        write: Callable[[], Awaitable[Place]],
    ) -> Self:
        """Call `write`, wait until the write can be read, and return the response.

        The wait is at most `wait` seconds. If `wait` is None, there is no wait.
        """

        async def places() -> Sequence[Place]:
            return [await write()]

        (place,), applied = await service.writes.applied(user_id, wait, places)
        return cls.at(place, event_id, applied)


class NotTaken(BaseModel):
    """A message of a list that was not written to the log, although other messages of the list were."""

    index: int = Field(description="position of the message in the list, from 0")
    kind: Literal["invalid_fields", "nothing_said"]
    detail: str = Field(description="what is wrong with the message, without its text")


class AcceptedMessages(BaseModel):
    """Messages are in the log, in the order in which they were given."""

    accepted: list[Accepted]
    not_taken: list[NotTaken] = Field(description="messages of the list that are not in the log")
    token: str | None = Field(
        description="covers all messages if they are of one user; null if they are of several users"
    )
    applied: bool | None = Field(
        default=None, exclude_if=absent, description="only with `wait=applied`: whether all messages can be read now"
    )
