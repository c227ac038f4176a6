"""Convert an imported chat to Siltstone's records: a record for each message, and for the end of each session."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import orjson

from schemas.conversations import Role
from schemas.errors import BadRecord
from schemas.exchanges import Message
from schemas.record_values import message_or_end
from schemas.settings import MemorySettings
from schemas.times import iso
from streams.doors.importing.chats import Chat
from streams.doors.importing.found import Found, Given, LeftOut, Problem, Record, digest
from streams.doors.importing.reading import Item
from streams.intake.rules.exchanges import Limits, cut

#: If a chat has no times at all, its messages get times that are this number of milliseconds apart.
_APART_MS: Final = 1000


class Names:
    """Chooses the session id of each chat of an import.

    The session id is the chat's id in the file, else the option `--session`, else an id derived from the chat's first
    messages. These stay the same when the chat grows, so a later import of the chat gets the same session id. If an
    id was already used in this import, a number is appended to it.
    """

    def __init__(self, session: str | None) -> None:
        self._session, self._given = session, Counter[str]()

    def of(self, chat: Chat) -> str:
        name = chat.id or self._session or f"chat-{digest(*_opening(chat))[:16]}"
        self._given[name] += 1
        again = self._given[name]
        return name if again == 1 else f"{name}-{again}"


def _opening(chat: Chat) -> list[str]:
    """Return the roles and texts of the chat's first messages, up to and including the assistant's first answer."""
    found = []
    for turn in chat.turns:
        found += [turn.role, turn.text.strip()]
        if turn.role is Role.ASSISTANT:
            break
    return found


def of_chat(chat: Chat, names: Names, item: Item, given: Given) -> Iterator[Found]:
    session, called = names.of(chat), f" ({chat.id})" if chat.id else ""
    if chat.left_out:
        yield LeftOut(chat.left_out)
    for why in chat.problems:
        yield Problem(item.line, item.where + called, why)
    said = []
    for turn, at in zip(chat.turns, _times(chat, given), strict=True):
        identity = turn.id or digest(session, turn.place, turn.role, turn.text.strip())
        message = Message(identity, turn.role, turn.text, at, name=turn.name)
        try:
            _message(message, session, given)
        except BadRecord as exc:
            yield Problem(item.line, f"{item.where}{called}, message {turn.place}", exc)
        else:
            said.append(message)
    for number, sitting in enumerate(sittings(said, given.memory), start=1):
        name = session if number == 1 else f"{session}.{number}"
        for message in sitting:
            yield _message(message, name, given)
        user, ended = str(given.user), sitting[-1].timestamp
        end = {"type": "session_end", "user_id": user, "session_id": name, "timestamp": iso(ended)}
        yield Record(user, orjson.dumps(end), ended, in_file=False)


def _message(message: Message, session: str, given: Given) -> Record:
    """Convert a message to a record. Raises `BadRecord` if the worker would not accept the record."""
    fields = {
        "user_id": given.user,
        "session_id": session,
        "message_id": message.message_id,
        "role": message.role,
        "content": message.content,
        "timestamp": iso(message.timestamp),
    }
    if message.name:
        fields["name"] = message.name
    message_or_end(fields)
    return Record(str(given.user), orjson.dumps(fields), message.timestamp)


def _times(chat: Chat, given: Given) -> list[int]:
    """Return the time of each turn in epoch ms. No turn is earlier than the turn before it.

    A turn without a time gets the time of the turn before it. Turns before the first known time get the first known
    time. If no turn has a time, all turns get the time `chat.began`. If `chat.began` is unknown too, the turns are
    one second apart, and the last turn is at `given.undated`, or at `given.now` if `given.undated` is None.
    """
    known = [turn.at for turn in chat.turns if turn.at is not None]
    if not known and chat.began is None:
        last = given.now if given.undated is None else given.undated
        return [last - _APART_MS * (len(chat.turns) - place) for place in range(1, len(chat.turns) + 1)]
    newest = known[0] if known else chat.began or 0
    times = []
    for turn in chat.turns:
        newest = max(newest, turn.at or 0)
        times.append(newest)
    return times


def sittings(said: Sequence[Message], memory: MemorySettings) -> Iterator[list[Message]]:
    """Split the messages of a chat into sessions that each fit into a short-term window.

    If the chat is imported again, all its messages are then still in the windows, so a worker recognises them. A new
    session begins after a silence of `session_idle_seconds`, after `capacity` exchanges, or before the session would
    last `ttl_seconds`.
    """
    sitting: list[list[Message]] = []
    for exchange in cut(said, Limits.of(memory)) if said else ():
        if sitting and (
            exchange[0].timestamp - sitting[-1][-1].timestamp >= memory.session_idle_seconds * 1000
            or exchange[-1].timestamp - sitting[0][0].timestamp >= memory.ttl_seconds * 1000
            or len(sitting) >= memory.capacity
        ):
            yield list(itertools.chain(*sitting))
            sitting = []
        sitting.append(exchange)
    if sitting:
        yield list(itertools.chain(*sitting))
