"""`add`: messages are said in a session, and what promotion finds worth keeping becomes memory; or kept as they are.

With `infer` (the default) the messages go into a session's window, where a search finds them at once. Without a
`run_id` a call is a conversation of its own, which is over: it is decided on at once. Within a `run_id` the session
goes on, and ends as all sessions do. With `infer=False` what users and assistants say is remembered word by word.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Self

import orjson
from pydantic import Field, ValidationError, model_validator

from schemas.conversations import SPEAKERS
from schemas.events import Remember
from schemas.fields import Metadata
from schemas.ids import Id, Label
from schemas.places import Place
from schemas.times import iso, now_ms
from streams.api.mem0.filters import APP
from streams.api.mem0.wire import Body, refused
from streams.api.messages import NewMessage, record_of
from streams.api.shown import command
from streams.dead_letters import invalid
from streams.importing.chats import Turn, moment
from streams.importing.openai import chat_of_messages
from streams.service import MemoryService

_IDENTITY = ("user_id", "agent_id", "app_id", "run_id")


class Added(Body):
    """What is added, and whose it is: in fields, or in `filters`."""

    messages: list[dict[str, Any]] = Field(min_length=1, max_length=1000)
    user_id: Id | None = None
    agent_id: Label | None = None
    app_id: Label | None = None
    run_id: Id | None = None
    metadata: Metadata | None = None
    infer: bool = True
    timestamp: int | float | str | None = Field(default=None, description="when it was said: Unix time, or ISO 8601")

    @model_validator(mode="before")
    @classmethod
    def _whose_from_filters(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "filters" not in given:
            return given
        filters, rest = given["filters"], {name: value for name, value in given.items() if name != "filters"}
        if not isinstance(filters, dict) or not filters.keys() <= set(_IDENTITY):
            raise ValueError(f"filters: when something is added they say whose it is: {', '.join(_IDENTITY)}")
        return {**filters, **rest}

    @model_validator(mode="after")
    def _identity_is_no_metadata(self) -> Self:
        if APP in (self.metadata or {}):
            raise ValueError(f"metadata: {APP} says whose it is: give it as {APP}, beside metadata")
        return self

    def turns(self) -> Sequence[Turn]:
        """What somebody says; pictures and calls of tools are no words. Raises 400."""
        chat = chat_of_messages(self.messages)
        if chat.problems:
            raise refused(str(chat.problems[0]))
        if not chat.turns:
            raise refused("messages: nobody says anything in them")
        return chat.turns

    def said_at(self) -> int:
        """Epoch ms. Raises 400."""
        if self.timestamp is None:
            return now_ms()
        at = moment(self.timestamp)
        if at is None:
            raise refused(f"timestamp: {str(self.timestamp)[:40]!r} is no time: give Unix time in seconds")
        return at

    def meta(self) -> dict[str, Any] | None:
        """What is kept with each; the app is among it."""
        return {**(self.metadata or {}), **({APP: self.app_id} if self.app_id else {})} or None


class Adding:
    """Writes what is added, in one request, and waits until it can be read."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def add(self, given: Added, user_id: str, seconds: float, sources: Sequence[str]) -> tuple[set[str], bool]:
        """The ids of the messages, or of the memories, and whether they can be read already. `sources`: who adds."""
        return await (self._say if given.infer else self._remember)(given, user_id, seconds, sources)

    async def _say(self, given: Added, user_id: str, seconds: float, sources: Sequence[str]) -> tuple[set[str], bool]:
        at, session = given.said_at(), given.run_id or f"mem0-{uuid.uuid4()}"
        turns = given.turns()
        messages: list[dict[str, Any]] = [
            {
                "user_id": user_id,
                "session_id": session,
                "message_id": str(uuid.uuid4()),
                "role": turn.role,
                "content": turn.text,
                "timestamp": iso(at if turn.at is None else turn.at),
                "name": turn.name,
                "agent_id": given.agent_id,
                "metadata": given.meta(),
            }
            for turn in turns
        ]
        records = []
        for place, message in enumerate(messages, start=1):
            try:
                said = NewMessage.model_validate(message)
            except ValidationError as exc:
                raise refused(f"message {place}: {invalid(exc)}") from exc
            try:
                records.append(record_of(said, message["message_id"], sources))
            except ValueError as exc:
                raise refused(f"message {place}: {exc}") from exc
        if given.run_id is None:
            ended = {"type": "session_end", "user_id": user_id, "session_id": session}
            records.append((user_id, orjson.dumps({**ended, "timestamp": messages[-1]["timestamp"]})))

        async def write() -> Sequence[Place]:
            return await self._service.add_messages(records)

        _, applied = await self._service.applied(user_id, seconds, write)
        return {str(one["message_id"]) for one in messages}, bool(applied)

    async def _remember(
        self, given: Added, user_id: str, seconds: float, sources: Sequence[str]
    ) -> tuple[set[str], bool]:
        events = []
        for turn in given.turns():
            if turn.role not in SPEAKERS:
                continue
            fields = {"agent_id": given.agent_id, "session_id": given.run_id, "metadata": given.meta()}
            at = given.said_at() if turn.at is None else turn.at
            try:
                event = command(Remember, user_id, text=turn.text, timestamp=at, sources=list(sources), **fields)
            except ValidationError as exc:
                raise refused(f"message {turn.place}: {invalid(exc)}") from exc
            events.append(self._service.importance.weighed(event))

        async def write() -> Sequence[Place]:
            return await self._service.write_all(events)

        if not events:
            raise refused("messages: with infer=False what users and assistants say is kept, and none of them does")
        _, applied = await self._service.applied(user_id, seconds, write)
        return {str(event.event_id) for event in events}, bool(applied)
