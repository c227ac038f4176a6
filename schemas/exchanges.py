"""Exchanges, the unit of promotion, and their messages."""

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

    It is a struct because one is made for every message: this takes a fraction of the time of a named tuple, and the
    garbage collector skips structs with `gc=False`. That is safe, because `metadata` is JSON and so has no cycles.
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
        """Return the speaker, and the token of the request if it had one."""
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
        """The time (epoch ms) of the earliest message."""
        return self.messages[0].timestamp

    @property
    def ended_at(self) -> int:
        """The time (epoch ms) of the latest message. The exchange expires a fixed time after it."""
        return self.messages[-1].timestamp

    @property
    def spoken(self) -> bool:
        """True if it has a message of a user or an assistant. Other exchanges are never promoted."""
        for message in self.messages:  # noqa: SIM110 - a generator takes twice as long, for every exchange
            if message.role in SPEAKERS:
                return True
        return False

    def said(self) -> tuple[str, str]:
        """Return the user's text and the assistant's, one line for each message."""
        if len(self.messages) == 2:  # nearly every exchange is a question and its answer
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
        """Return the merged metadata of all messages, and the user's first emotion as `emotion`.

        If messages have the same key, the value of the latest one is used.
        """
        metadata: dict[str, Any] = {}
        for message in self.messages:
            metadata |= message.metadata or {}
        if SOURCES in metadata:  # it has one message's sources; `sources()` has all
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
        """Return `sources()`, or an empty list if they are the usual ones, a user and an assistant without names.

        Nearly all exchanges have only the usual ones.
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
        """The first agent id in its messages; None if there is none."""
        return next((message.agent_id for message in self.messages if message.agent_id), None)

    def speakers(self) -> list[str]:
        """Return the speakers' names, if known, in alphabetical order."""
        return sorted({message.name for message in self.messages if message.name})

    def emotions(self) -> list[str]:
        """Return the emotions of the user's messages. Those of an assistant are only its manner of speaking."""
        return [message.emotion for message in self.messages if message.emotion and message.role is Role.USER]


def render(exchange: Exchange) -> str:
    """Return the text of an exchange as a memory: user lines, then assistant lines, with speakers' names if known."""
    return "\n".join(
        f"{message.name}: {message.content}" if message.name else message.content
        for role in (Role.USER, Role.ASSISTANT)
        for message in exchange.messages
        if message.role is role and message.content
    )
