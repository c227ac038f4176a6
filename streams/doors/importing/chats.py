"""The common form to which chats of all formats are converted: turns in order, with their ids and times."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from schemas.contents import words_of
from schemas.conversations import Role
from schemas.errors import BadRecord
from schemas.times import parse_timestamp

#: A time below this number counts as seconds, because as milliseconds it would be a time before 1974.
_FIRST_MILLIS: Final = 1e11


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a chat. `at` is its time in epoch ms.

    `place` is its position in the file's list of messages, from 1. Messages that are left out have positions too.
    """

    place: int
    role: Role
    text: str
    at: int | None = None
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation. `began` is the time of its start in epoch ms.

    `left_out` is the number of messages that are not part of the conversation, such as hidden messages, tool calls
    and empty messages. `problems` has an error for each message that violates the format. All others are used.
    """

    turns: tuple[Turn, ...]
    id: str | None = None
    began: int | None = None
    left_out: int = 0
    problems: tuple[BadRecord, ...] = ()

    @classmethod
    def of(
        cls,
        messages: Sequence[Any],
        turn: Callable[[int, Any], Turn | None],
        identity: str | None,
        began: int | None,
    ) -> Self:
        """Build a chat from the file's list of messages. If the newest message comes first, the list is reversed.

        `turn` converts a message, given its position (from 1). It returns None to leave the message out, and raises
        `BadRecord` if the message violates the format.
        """
        turns, problems = [], []
        for place, message in enumerate(messages, start=1):
            try:
                turns.append(turn(place, message))
            except BadRecord as exc:
                problems.append(exc)
        said = tuple(one for one in turns if one is not None)
        left_out = len(turns) - len(said)
        if _falls([one.at for one in said if one.at is not None]):
            said = said[::-1]
        return cls(said, identity, began, left_out, tuple(problems))


def _falls(times: Sequence[int]) -> bool:
    """Whether the times are in descending order: some services list the newest message first."""
    return len(times) > 1 and times[0] > times[-1] and all(one >= other for one, other in itertools.pairwise(times))


def moment(value: object) -> int | None:
    """Convert an export's time (ISO 8601, seconds or milliseconds) to epoch ms. Returns None if it is not a time."""
    if isinstance(value, str) and value.replace(".", "", 1).isdigit():
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _FIRST_MILLIS:
        value = value * 1000
    try:
        return parse_timestamp(value)
    except ValueError:
        return None


def first_moment(fields: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of the fields `names` that is a time, in epoch ms. Returns None if there is none."""
    return next((at for name in names if (at := moment(fields.get(name))) is not None), None)


def text_id(value: object) -> str | None:
    """Return an id, which may be a number, as text. Returns None if `value` is not an id."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None


def text_of(content: object, role: str, place: int) -> str:
    """Return the text in a message's content; empty if there is none.

    Raises `BadRecord`. `place` is the position of the message, for the text of the error.
    """
    try:
        text = words_of(content, role)
    except ValueError as exc:
        raise misshapen(f"message {place}: content {exc}") from exc
    return text if text.strip() else ""


def misshapen(what: str) -> BadRecord:
    """Return the error for a chat that violates its format."""
    return BadRecord("invalid_fields", what)
