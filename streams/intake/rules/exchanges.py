"""Rules that decide at which message an exchange ends and the next one begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from schemas.conversations import Role
from schemas.exchanges import Message
from schemas.settings import MemorySettings


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of exchanges and sessions.

    A silence of `gap_ms` closes an exchange. An exchange with `messages` messages closes at the next message. A
    silence of `idle_ms` ends the session.
    """

    gap_ms: int
    messages: int
    idle_ms: int

    @classmethod
    def of(cls, memory: MemorySettings) -> Self:
        return cls(memory.exchange_gap_seconds * 1000, memory.exchange_messages, memory.session_idle_seconds * 1000)


def answered(said: Sequence[Message]) -> bool:
    """True if any of the messages is an assistant's."""
    for message in said:  # noqa: SIM110 - a generator takes twice as long, for every session of every batch
        if message.role is Role.ASSISTANT:
            return True
    return False


def starts_new(said: Sequence[Message], message: Message, limits: Limits) -> bool:
    """True if `message` begins a new exchange. `said` are the open exchange's messages so far, in time order."""
    return len(said) >= limits.messages or (message.role is Role.USER and answered(said))


def silence_closes(said: Sequence[Message], moment: int, limits: Limits) -> bool:
    """True if silence up to `moment` (epoch ms) closes the open exchange."""
    return bool(said) and moment - said[-1].timestamp >= limits.gap_ms


def cut(messages: Iterable[Message], limits: Limits) -> list[list[Message]]:
    """Cut messages, in time order, into exchanges; the last one is open, the others are closed."""
    exchanges: list[list[Message]] = [[]]
    for message in messages:
        said = exchanges[-1]
        if silence_closes(said, message.timestamp, limits) or starts_new(said, message, limits):
            exchanges.append(said := [])
        said.append(message)
    return exchanges
