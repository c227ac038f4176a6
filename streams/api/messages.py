"""Chat messages as the API takes them: one, or a list."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Self

import orjson
from fastapi import Body, HTTPException
from pydantic import AliasChoices, Discriminator, Field, Tag, model_validator

from schemas.conversations import ChatMessage
from schemas.fields import MAX_METADATA_BYTES, Timestamp, keepable, writable
from schemas.places import Place, newest
from schemas.sources import SOURCES
from schemas.times import iso, now_ms
from streams.api.accepted import Accepted, AcceptedMessages
from streams.service import MemoryService


class NewMessage(ChatMessage):
    """A chat message whose time is now where it names none.

    Its unknown fields are judged together: a complaint about one would have its name, which was sent, in it.
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
            raise ValueError("type: a message is no session_end: POST /v1/sessions/{session_id}/end ends a session")
        return self


def _how_many(given: Any) -> str:
    return "messages" if isinstance(given, list) else "message"


#: One message, or up to a thousand.
Given = Annotated[
    Annotated[NewMessage, Tag("message")]
    | Annotated[list[NewMessage], Field(min_length=1, max_length=1000), Tag("messages")],
    Discriminator(_how_many),
    Body(),
]


async def add_messages(
    service: MemoryService, given: NewMessage | list[NewMessage], wait: float | None, sources: Sequence[str] = ()
) -> Accepted | AcceptedMessages:
    """Produce them in their order. `wait`: seconds, at the most, until they are in their windows; None: at once.

    `sources` are recorded with each, and nothing that a message says of its own.
    """
    messages = given if isinstance(given, list) else [given]
    users = {message.user_id for message in messages}
    if wait is not None and len(users) > 1:
        raise HTTPException(422, f"wait=applied: a list of one user's messages, not of {len(users)} users'")
    event_ids = [message.message_id or str(uuid.uuid4()) for message in messages]
    try:
        records = [record_of(*one, sources) for one in zip(messages, event_ids, strict=True)]
    except ValueError as exc:
        raise HTTPException(422, str(exc)) from exc

    async def write() -> Sequence[Place]:
        return await service.add_messages(records)

    places, applied = await service.applied(messages[0].user_id, wait, write)
    accepted = [Accepted.at(*written) for written in zip(places, event_ids, strict=True)]
    if not isinstance(given, list):
        return accepted[0].model_copy(update={"applied": applied})
    token = newest(places)[0].token if len(users) == 1 else None
    return AcceptedMessages(accepted=accepted, token=token, applied=applied)


def record_of(message: NewMessage, event_id: str, sources: Sequence[str]) -> tuple[str, bytes]:
    """Whose it is, and what goes into the log: with these sources, and none that the message says of its own.

    Raises `ValueError` where its metadata has no room for them.
    """
    fields = message.model_dump(mode="json", exclude_none=True)
    fields.pop(SOURCES, None)
    metadata = {key: value for key, value in (message.metadata or {}).items() if key != SOURCES}
    if sources:
        metadata[SOURCES] = list(sources)
        if writable({**message.all_metadata, **metadata}) > MAX_METADATA_BYTES:
            raise ValueError(f"metadata: with the token's name, more than {MAX_METADATA_BYTES} bytes of JSON")
    if metadata or message.metadata is not None:
        fields["metadata"] = metadata
    return message.user_id, orjson.dumps(fields | {"message_id": event_id, "timestamp": iso(message.timestamp)})
