"""The method `add` of mem0's API: put messages into a session, or remember them verbatim.

With `infer` (the default), the messages go into a session's window, where a search finds them immediately, and
promotion may make memories of them. Without a `run_id`, each call is a complete conversation: its session ends, and
its exchanges are decided immediately. With a `run_id`, the session continues until it ends by an event or by silence.
With `infer=False`, messages of users and assistants are remembered verbatim.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import orjson
from fastapi import HTTPException
from pydantic import Field, ValidationError, model_validator

from schemas.conversations import SPEAKERS, content_id
from schemas.events import LongTermEvent, Remember
from schemas.fields import Metadata
from schemas.ids import Id, Label, event_id
from schemas.places import Place
from schemas.record_values import invalid
from schemas.times import iso, now_ms
from streams.doors.http.messages import MOST_MESSAGES, NewMessage, record_of
from streams.doors.http.shown import command
from streams.doors.http.wording import at_most
from streams.doors.importing.chats import Chat, Turn, moment
from streams.doors.importing.openai import chat_of_messages
from streams.doors.mem0.filters import APP
from streams.doors.mem0.wire import Body, refused
from streams.service import MemoryService

_IDENTITY = ("user_id", "agent_id", "app_id", "run_id")


class Added(Body):
    """The messages to add, and their owner, who is named in fields such as `user_id`, or in `filters`."""

    messages: list[Any] = Field(min_length=1, max_length=MOST_MESSAGES)
    user_id: Id | None = None
    agent_id: Label | None = None
    app_id: Label | None = None
    run_id: Id | None = None
    metadata: Metadata | None = None
    infer: bool = True
    timestamp: int | float | str | None = Field(
        default=None, description="time of the messages: Unix time or ISO 8601"
    )

    @model_validator(mode="before")
    @classmethod
    def _whose_from_filters(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "filters" not in given:
            return given
        filters, rest = given["filters"], {name: value for name, value in given.items() if name != "filters"}
        if not isinstance(filters, dict) or not filters.keys() <= set(_IDENTITY):
            raise ValueError(f"filters: in add, they only name the owner: {', '.join(_IDENTITY)}")
        return {**filters, **rest}

    @model_validator(mode="after")
    def _identity_is_no_metadata(self) -> Self:
        if APP in (self.metadata or {}):
            raise ValueError(f"metadata: {APP} names the owner: pass it as {APP}, beside metadata")
        return self

    def chat(self) -> Chat:
        """Return the messages that have text. Pictures and tool calls are omitted."""
        return chat_of_messages(self.messages)

    def said_at(self) -> int:
        """Return the time of the messages in epoch ms: `timestamp`, or the current time if there is none.

        Raises an `HTTPException` (400) if `timestamp` is not a time.
        """
        if self.timestamp is None:
            return now_ms()
        at = moment(self.timestamp)
        if at is None:
            raise refused(f"timestamp: {str(self.timestamp)[:40]!r} is not a time: give Unix time in seconds")
        return at

    def id_of(self, user_id: str, *turns: Turn) -> uuid.UUID:
        """Return an id for these turns of the conversation.

        If the request or a turn has a time, the id is derived from the content, so that a repeated call adds nothing.
        Otherwise the id is random.
        """
        if self.timestamp is None and all(turn.at is None for turn in turns):
            return uuid.uuid4()
        said = [(turn.place, turn.role, turn.text, turn.at) for turn in turns]
        return event_id("mem0", user_id, self.agent_id, self.app_id, self.run_id, self.timestamp, said)

    def meta(self) -> dict[str, Any] | None:
        """Return the metadata to store with each message, including the app's id, or None if there is no metadata."""
        return {**(self.metadata or {}), **({APP: self.app_id} if self.app_id else {})} or None


class Done(NamedTuple):
    """The ids of the added messages or memories.

    `applied` is true if the added messages or memories can be read now. `not_taken` has the reason for each message
    that was refused.
    """

    ids: set[str]
    applied: bool
    not_taken: list[str]


class Adding:
    """Writes the messages or memories of one request, and waits until they can be read."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def add(self, given: Added, user_id: str, seconds: float, sources: Sequence[str]) -> Done:
        """Add the messages, and record these `sources` with them. Wait at most `seconds` until they can be read.

        Raises an `HTTPException` (400) if none of the messages can be added.
        """
        return await (self._say if given.infer else self._remember)(given, user_id, seconds, sources)

    async def _say(self, given: Added, user_id: str, seconds: float, sources: Sequence[str]) -> Done:
        at, chat = given.said_at(), given.chat()
        session = given.run_id or f"mem0-{given.id_of(user_id, *chat.turns)}"
        ids, records, not_taken = list[str](), list[bytes](), list(map(str, chat.problems))
        ended = at
        for turn in chat.turns:
            message = {
                "user_id": user_id,
                "session_id": session,
                "role": turn.role,
                "content": turn.text,
                "timestamp": iso(at if turn.at is None else turn.at),
                "name": turn.name,
                "agent_id": given.agent_id,
                "metadata": given.meta(),
            }
            try:
                said = NewMessage.model_validate(message)
                identity = str(given.id_of(user_id, turn)) if turn.at is None else content_id(said)
                records.append(record_of(said, identity, sources))
            except ValueError as exc:
                not_taken.append(_why(turn, exc))
            else:
                ids.append(identity)
                ended = said.timestamp
        if not records:
            raise _nothing_of(not_taken, "messages: none of them has text")
        if given.run_id is None:
            end = {"type": "session_end", "user_id": user_id, "session_id": session, "timestamp": iso(ended)}
            records.append(orjson.dumps(end))

        async def write() -> Sequence[Place]:
            return await self._service.writes.add_messages([(user_id, record) for record in records])

        _, applied = await self._service.writes.applied(user_id, seconds, write)
        return Done(set(ids), bool(applied), not_taken)

    async def _remember(self, given: Added, user_id: str, seconds: float, sources: Sequence[str]) -> Done:
        chat = given.chat()
        events, not_taken = list[LongTermEvent](), list(map(str, chat.problems))
        for turn in chat.turns:
            if turn.role not in SPEAKERS:
                continue
            fields = {
                "event_id": given.id_of(user_id, turn),
                "agent_id": given.agent_id,
                "session_id": given.run_id,
                "metadata": given.meta(),
            }
            at = given.said_at() if turn.at is None else turn.at
            try:
                event = command(Remember, user_id, text=turn.text, timestamp=at, sources=list(sources), **fields)
            except ValidationError as exc:
                not_taken.append(_why(turn, exc))
            else:
                events.append(self._service.importance.weighed(event))
        if not events:
            raise _nothing_of(
                not_taken,
                "messages: with infer=False only texts of users and assistants are kept, and there are none",
            )

        async def write() -> Sequence[Place]:
            return await self._service.writes.write_all(events)

        _, applied = await self._service.writes.applied(user_id, seconds, write)
        return Done({str(event.event_id) for event in events}, bool(applied), not_taken)


def _why(turn: Turn, exc: ValueError) -> str:
    return f"message {turn.place}: {invalid(exc) if isinstance(exc, ValidationError) else exc}"


def _nothing_of(not_taken: Sequence[str], otherwise: str) -> HTTPException:
    return refused(at_most(not_taken) or otherwise)
