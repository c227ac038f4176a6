"""Exchanges and their messages. Siltstone decides for each exchange whether it becomes a long-term memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import msgspec

from schemas.conversations import SPEAKERS, ChatMessage, Role, content_id
from schemas.ids import memory_id
from schemas.sources import SOURCES, USUAL, any_covered, meant, together


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message within a window: a validated `ChatMessage` with an id and only the fields that we use.

    Because one is created for every message, the class is a msgspec struct. Its creation takes a fraction of the time
    of a named tuple, and with `gc=False` the garbage collector skips it. That is safe, because `metadata` is JSON and
    so has no cycles.
    """

    message_id: str
    role: Role
    content: str
    timestamp: int
    emotion: str | None = None
    name: str | None = None
    agent_id: str | None = None
    metadata: dict[str, Any] | None = None

    def sources(self) -> list[str]:
        """Return the sources of the message: its speaker, and the token of its HTTP request if it had one."""
        who = f"{self.role.value}:{self.name}" if self.name else self.role.value
        return [who, *meant((self.metadata or {}).get(SOURCES))]

    @classmethod
    def of(cls, said: ChatMessage) -> Message:
        return cls(
            said.message_id or content_id(said),
            said.role,
            said.content,
            said.timestamp,
            said.emotion,
            said.name,
            said.agent_id,
            (said.all_metadata or None) if said.metadata or said.model_extra else None,
        )


class Emptied(msgspec.Struct, frozen=True, gc=False, rename={"ended_at": "t", "message_ids": "m"}):
    """The data that is kept of an exchange that has left its window: its end time (epoch ms) and message ids."""

    ended_at: int
    message_ids: list[str]


class Exchange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One run of user messages and the run of assistant messages that answers it: the unit of promotion.

    Messages are in time order.
    """

    seq: int
    messages: tuple[Message, ...]

    @property
    def started_at(self) -> int:
        """The time (epoch ms) of the exchange's earliest message."""
        return self.messages[0].timestamp

    @property
    def ended_at(self) -> int:
        """The time (epoch ms) of the exchange's latest message. The exchange expires a fixed time after it."""
        return self.messages[-1].timestamp

    @property
    def spoken(self) -> bool:
        """True if the exchange has a message of a user or an assistant. Without one, it is never promoted."""
        for message in self.messages:  # noqa: SIM110 - a generator takes twice as long, for every exchange
            if message.role in SPEAKERS:
                return True
        return False

    def said(self) -> tuple[str, str]:
        """Return the text of the user and the text of the assistant. Each message of a text is on its own line."""
        if len(self.messages) == 2:  # the fast path: nearly every exchange is one question and its answer
            asked, answer = self.messages
            if asked.role is Role.USER and answer.role is Role.ASSISTANT:
                return asked.content, answer.content
        user, assistant = [], []
        for message in self.messages:
            if message.role is Role.USER:
                user.append(message.content)
            elif message.role is Role.ASSISTANT:
                assistant.append(message.content)
        return "\n".join(user), "\n".join(assistant)

    def memory_id(self, user_id: str, session_id: str) -> uuid.UUID:
        """Return the id of the memory that the exchange becomes."""
        return memory_id(user_id, session_id, tuple(self.message_ids))

    def metadata(self) -> dict[str, Any]:
        """Return the merged metadata of the exchange's messages, and the user's first emotion as `emotion`.

        If several messages have the same key, the value of the latest message is used.
        """
        metadata: dict[str, Any] = {}
        for message in self.messages:
            metadata |= message.metadata or {}
        if SOURCES in metadata:  # this key has the sources of one message; `sources()` returns all
            metadata = {key: value for key, value in metadata.items() if key != SOURCES}
        if emotions := self.emotions():
            metadata["emotion"] = emotions[0]
        return metadata

    def sources(self) -> list[str]:
        """Return the sources of all messages except system messages, in alphabetical order."""
        found = set[str]()
        for message in self.messages:
            if message.role is not Role.SYSTEM:
                found.update(message.sources())
        return together(found)

    def unusual_sources(self) -> list[str]:
        """Return the exchange's sources, or an empty list if they are the usual ones.

        The usual sources are a user and an assistant without names. Nearly all exchanges have only these.
        """
        user = assistant = False
        for message in self.messages:
            if message.name or message.metadata or message.role not in SPEAKERS:
                break
            user, assistant = user or message.role is Role.USER, assistant or message.role is Role.ASSISTANT
        else:
            if user and assistant:
                return []
        found = self.sources()
        return [] if found == [*USUAL] else found

    @property
    def message_ids(self) -> list[str]:
        return [message.message_id for message in self.messages]

    def emptied(self) -> Emptied:
        return Emptied(self.ended_at, self.message_ids)

    def without(self, excluded: Iterable[str]) -> Exchange:
        """Return the exchange without the messages of the `excluded` sources."""
        left = tuple(one for one in self.messages if not any_covered(excluded, one.sources()))
        return Exchange(self.seq, left)

    @property
    def agent_id(self) -> str | None:
        """The first agent id in the exchange's messages, or None if no message has one."""
        return next((message.agent_id for message in self.messages if message.agent_id), None)

    def speakers(self) -> list[str]:
        """Return the known names of the exchange's speakers, in alphabetical order."""
        return sorted({message.name for message in self.messages if message.name})

    def emotions(self) -> list[str]:
        """Return the emotions of the user's messages. An assistant's emotions are left out: they are only style."""
        return [message.emotion for message in self.messages if message.emotion and message.role is Role.USER]


def render(exchange: Exchange) -> str:
    """Return the text of the memory that an exchange becomes: the user's messages, then the assistant's messages.

    If the name of a speaker is known, it precedes the message.
    """
    return "\n".join(
        f"{message.name}: {message.content}" if message.name else message.content
        for role in (Role.USER, Role.ASSISTANT)
        for message in exchange.messages
        if message.role is role and message.content
    )
