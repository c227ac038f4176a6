"""Cuts the messages of a day into turns. Topics refer to turns by their numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from schemas.conversations import SPEAKERS, ChatMessage
from schemas.exchanges import Message
from schemas.summary_requests import Said
from streams.intake.rules.exchanges import Limits, cut


class Turn(NamedTuple):
    """An exchange, with only the messages of the user and the assistant. `number` counts a day's turns from 1."""

    number: int
    session_id: str
    messages: tuple[Message, ...]


def turns_of(messages: Iterable[ChatMessage], limits: Limits) -> list[Turn]:
    """Return the turns of one user's messages."""
    return turns_in((Said(message.session_id, Message.of(message)) for message in messages), limits)


def turns_in(said: Iterable[Said], limits: Limits) -> list[Turn]:
    """Return the turns of one user's sessions, in the order in which the turns began.

    Each session is cut into turns separately, by the same rules as in short-term memory. So simultaneous sessions do
    not mix. A repeated message is dropped, because it is a producer's retry.
    """
    sessions: dict[str, dict[str, Message]] = {}
    for session_id, message in sorted(said, key=_time):
        sessions.setdefault(session_id, {}).setdefault(message.message_id, message)
    spoken = [
        (session_id, speaking)
        for session_id, said_once in sessions.items()
        for exchange in cut(said_once.values(), limits)
        if (speaking := tuple(message for message in exchange if message.role in SPEAKERS))
    ]
    spoken.sort(key=lambda turn: turn[1][0].timestamp)
    return [Turn(number, *turn) for number, turn in enumerate(spoken, 1)]


def _time(one: Said) -> int:
    return one.message.timestamp
