"""Chat messages that clients send to the API: one message, or a list of messages."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Final, NamedTuple, Self

import orjson
from fastapi import Body, HTTPException
from pydantic import (
    AliasChoices,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from schemas.contents import NOTHING_SAID
from schemas.conversations import ChatMessage, content_id
from schemas.fields import MAX_METADATA_BYTES, Timestamp, keepable, writable
from schemas.places import Place, newest
from schemas.sources import SOURCES
from schemas.times import iso, now_ms
from streams.doors.http.accepted import Accepted, AcceptedMessages, NotTaken
from streams.doors.http.wording import at_most, complaints
from streams.service import MemoryService

MOST_MESSAGES: Final = 1000
"""The maximum number of messages in one list."""


class NewMessage(ChatMessage):
    """A chat message. Without a timestamp, it gets the current time.

    Unknown fields are validated together. An error about a single field would contain its name, and errors must not
    repeat anything of the request.
    """

    __pydantic_extra__: dict[str, Any]
    timestamp: Timestamp = Field(
        default_factory=now_ms,
        validation_alias=AliasChoices("timestamp", "created_at"),
    )

    @model_validator(mode="after")
    def _can_be_kept(self) -> Self:
        keepable(self.model_extra)
        if self.__pydantic_extra__.get("type") == "session_end":
            raise ValueError(
                "type: a message cannot be a session_end: POST /v1/sessions/{session_id}/end ends a session"
            )
        return self


def _how_many(given: Any) -> str:
    return "messages" if isinstance(given, list) else "message"


def _each_for_itself(given: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Validate one message of a list. Return the message, or the text of the error if the message is invalid.

    The error is returned instead of raised, so that the other messages of the list can still be accepted.
    """
    try:
        return read(given)
    except ValidationError as exc:
        return complaints({**error, "loc": ("message", *error["loc"])} for error in exc.errors())


#: The body of a request: one message, or a list of messages.
Given = Annotated[
    Annotated[NewMessage, Tag("message")]
    | Annotated[
        list[Annotated[NewMessage, WrapValidator(_each_for_itself)]],
        Field(min_length=1, max_length=MOST_MESSAGES),
        Tag("messages"),
    ],
    Discriminator(_how_many),
    Body(),
]


async def add_messages(
    service: MemoryService,
    given: NewMessage | Sequence[NewMessage | str],
    wait: float | None,
    sources: Sequence[str] = (),
) -> Accepted | AcceptedMessages:
    """Write messages to the log, in the given order.

    A string in the list is the error of a message that could not be read. `wait` is the maximum number of seconds to
    wait until the messages are in their windows. If it is None, there is no wait. `sources` are recorded with each
    message, instead of sources that the message itself names.
    """
    one = isinstance(given, NewMessage)
    taken, not_taken = _sorted_out([given] if isinstance(given, NewMessage) else given, sources)
    if not taken:
        why = [refused.detail if one else f"{refused.index}.{refused.detail}" for refused in not_taken]
        raise HTTPException(422, at_most(why))
    users = {user_id for user_id, _, _ in taken}
    if wait is not None and len(users) > 1:
        raise HTTPException(422, f"wait=applied: all messages of the list must be of one user, not of {len(users)}")

    async def write() -> Sequence[Place]:
        return await service.writes.add_messages([(user_id, record) for user_id, _, record in taken])

    places, applied = await service.writes.applied(taken[0].user_id, wait, write)
    accepted = [Accepted.at(place, written.event_id) for place, written in zip(places, taken, strict=True)]
    if one:
        return accepted[0].model_copy(update={"applied": applied})
    token = newest(places)[0].token if len(users) == 1 else None
    return AcceptedMessages(accepted=accepted, not_taken=not_taken, token=token, applied=applied)


class _Taken(NamedTuple):
    user_id: str
    event_id: str
    record: bytes


def _sorted_out(given: Sequence[NewMessage | str], sources: Sequence[str]) -> tuple[list[_Taken], list[NotTaken]]:
    taken, not_taken = list[_Taken](), list[NotTaken]()
    for index, message in enumerate(given):
        if isinstance(message, str):
            not_taken.append(NotTaken(index=index, kind="invalid_fields", detail=message))
        elif message.says_nothing:
            not_taken.append(NotTaken(index=index, kind="nothing_said", detail=NOTHING_SAID))
        else:
            event_id = message.message_id or _own_id(message)
            try:
                taken.append(_Taken(message.user_id, event_id, record_of(message, event_id, sources)))
            except ValueError as exc:
                not_taken.append(NotTaken(index=index, kind="invalid_fields", detail=str(exc)))
    return taken, not_taken


def _own_id(message: NewMessage) -> str:
    """Return an id for a message that has none.

    If the message has a timestamp, its id is derived from its content, as for records from Kafka, so that a repeated
    request adds nothing. Otherwise the id is random.
    """
    return content_id(message) if "timestamp" in message.model_fields_set else str(uuid.uuid4())


def record_of(message: NewMessage, event_id: str, sources: Sequence[str]) -> bytes:
    """Return the log record of a message. It has `sources` instead of the sources that the message itself names.

    Raises `ValueError` if the metadata is too large with these sources.
    """
    fields = message.model_dump(mode="json", exclude_none=True)
    fields.pop(SOURCES, None)
    metadata = {key: value for key, value in (message.metadata or {}).items() if key != SOURCES}
    if sources:
        metadata[SOURCES] = list(sources)
        if writable({**message.all_metadata, **metadata}) > MAX_METADATA_BYTES:
            raise ValueError(f"metadata: with the token's name, it has more than {MAX_METADATA_BYTES} bytes of JSON")
    if metadata or message.metadata is not None:
        fields["metadata"] = metadata
    return orjson.dumps(fields | {"message_id": event_id, "timestamp": iso(message.timestamp)})
