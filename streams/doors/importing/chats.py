"""The common form of imported chats. Chats of all formats are converted to this form before they become records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from schemas.contents import words_of
from schemas.conversations import Role
from schemas.errors import BadRecord
from schemas.times import parse_timestamp

#: A number below this one is a time in seconds, because a time in milliseconds would then be before 1974.
_FIRST_MILLIS: Final = 1e11


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of an imported chat. `at` is its time in epoch ms, or None if the file has no time for it.

    `place` is its position in the file's list of messages, from 1. Messages that are left out are counted too.
    """

    place: int
    role: Role
    text: str
    at: int | None = None
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Chat:
    """An imported conversation. `turns` has its messages. `began` is the time of its start in epoch ms, if known.

    `left_out` is the number of messages that are not imported because they are not part of the conversation, such as
    hidden messages, tool calls and empty messages. `problems` has an error for each message that violates the format.
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
        """Build a chat from the file's list of messages. If the newest message comes first, the order is reversed.

        `turn` converts one message. It gets the position of the message (from 1) and the message. It returns None if
        the message is not to be imported, and raises `BadRecord` if the message violates the format.
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
    """Return True if the times are in descending order, because some services list the newest message first."""
    return len(times) > 1 and times[0] > times[-1] and all(one >= other for one, other in itertools.pairwise(times))


def moment(value: object) -> int | None:
    """Convert a time in an export to epoch ms. Returns None if the value is not a time.

    Exports have times in ISO 8601, in seconds or in milliseconds.
    """
    if isinstance(value, str) and value.replace(".", "", 1).isdigit():
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _FIRST_MILLIS:
        value = value * 1000
    try:
        return parse_timestamp(value)
    except ValueError:
        return None


def first_moment(fields: Mapping[str, Any], *names: str) -> int | None:
    """Return the first time in the fields `names`, in epoch ms. Returns None if none of the fields has a time."""
    return next((at for name in names if (at := moment(fields.get(name))) is not None), None)


def text_id(value: object) -> str | None:
    """Return an id as text, because some exports have numbers as ids. Returns None if `value` is not an id."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None


def text_of(content: object, role: str, place: int) -> str:
    """Return the text in a message's content, or an empty text if the content has none.

    Raises `BadRecord` if the content is invalid. `place` is the message's position, which the error names.
    """
    try:
        text = words_of(content, role)
    except ValueError as exc:
        raise misshapen(f"message {place}: content {exc}") from exc
    return text if text.strip() else ""


def misshapen(what: str) -> BadRecord:
    """Return the error for an imported chat that violates its format. `what` is the text of the error."""
    return BadRecord("invalid_fields", what)
