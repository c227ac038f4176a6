"""The exchange: the unit of promotion, and the messages that it is of."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import msgspec

from schemas.conversations import SPEAKERS, ChatMessage, Role, content_id
from schemas.ids import memory_id
from schemas.sources import SOURCES, USUAL, any_covered, meant, together


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message within a window: a validated `ChatMessage` with an id and nothing but what we use.

    One is made of every message: a struct takes a fraction of a named tuple's time to make, and the garbage collector
    need not look at it. Nothing that it holds can refer back to it: `metadata` is JSON.
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
        """Who speaks, and by which token it came."""
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
    """What is known of an exchange that has left its window: when it ended (epoch ms), and which messages it had."""

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
        """Epoch milliseconds of the earliest message."""
        return self.messages[0].timestamp

    @property
    def ended_at(self) -> int:
        """Epoch milliseconds of the latest message: what expiry counts from."""
        return self.messages[-1].timestamp

    @property
    def spoken(self) -> bool:
        """Whether a user or an assistant said anything; system and tool messages alone are never promoted."""
        for message in self.messages:  # noqa: SIM110 - a generator takes twice as long, for every exchange
            if message.role in SPEAKERS:
                return True
        return False

    def said(self) -> tuple[str, str]:
        """What the user and what the assistant said, a line a message."""
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
        """The id of the memory that it becomes."""
        return memory_id(user_id, session_id, tuple(self.message_ids))

    def metadata(self) -> dict[str, Any]:
        """That of all messages, the latest one's where several have a key, and the emotion."""
        metadata: dict[str, Any] = {}
        for message in self.messages:
            metadata |= message.metadata or {}
        if SOURCES in metadata:  # those of one message: `sources` has all
            metadata = {key: value for key, value in metadata.items() if key != SOURCES}
        if emotions := self.emotions():
            metadata["emotion"] = emotions[0]
        return metadata

    def sources(self) -> list[str]:
        """Who has a part in it, but for the system, in alphabetical order."""
        found = set[str]()
        for message in self.messages:
            if message.role is not Role.SYSTEM:
                found.update(message.sources())
        return together(found)

    def unusual_sources(self) -> list[str]:
        """The same; none where it is a user and an assistant alone, neither of them named: nearly all are."""
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
        """What of it none of these sources has said."""
        left = tuple(one for one in self.messages if not any_covered(excluded, one.sources()))
        return Exchange(self.seq, left)

    @property
    def agent_id(self) -> str | None:
        """The first agent that it names."""
        return next((message.agent_id for message in self.messages if message.agent_id), None)

    def speakers(self) -> list[str]:
        """Whose names are known, in alphabetical order."""
        return sorted({message.name for message in self.messages if message.name})

    def emotions(self) -> list[str]:
        """Those of the user: an assistant's are its manner of speaking."""
        return [message.emotion for message in self.messages if message.emotion and message.role is Role.USER]


def render(exchange: Exchange) -> str:
    """The text of an exchange as a memory: user lines, then assistant lines, with speakers' names if known."""
    return "\n".join(
        f"{message.name}: {message.content}" if message.name else message.content
        for role in (Role.USER, Role.ASSISTANT)
        for message in exchange.messages
        if message.role is role and message.content
    )
