"""A day's messages as turns: what topics refer to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from schemas.conversations import SPEAKERS, ChatMessage
from schemas.exchanges import Message
from schemas.summary_requests import Said
from streams.intake.rules.exchanges import Limits, cut


class Turn(NamedTuple):
    """An exchange, counted over the day: the first one is 1. Only user and assistant speak in it."""

    number: int
    session_id: str
    messages: tuple[Message, ...]


def turns_of(messages: Iterable[ChatMessage], limits: Limits) -> list[Turn]:
    """The turns of one user's messages."""
    return turns_in((Said(message.session_id, Message.of(message)) for message in messages), limits)


def turns_in(said: Iterable[Said], limits: Limits) -> list[Turn]:
    """The turns of what was said in one user's sessions, in the order in which they began.

    Sessions are cut one by one, as short-term memory cuts them, so that what is said in two at the same time does not
    mix. A message that comes again is a producer's retry.
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
