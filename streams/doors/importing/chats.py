"""The common form of all chat formats: turns in their order, with the ids and times of the file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from schemas.contents import words_of
from schemas.conversations import Role
from schemas.errors import BadRecord
from schemas.times import parse_timestamp

#: Smaller numbers are seconds: as milliseconds they would lie before 1974.
_FIRST_MILLIS: Final = 1e11


@dataclass(frozen=True, slots=True)
class Turn:
    """One message; `at` is epoch ms. `place` is its number in the file's chat, from 1, counting messages left out."""

    place: int
    role: Role
    text: str
    at: int | None = None
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation; `began` is epoch ms.

    `left_out` counts the messages that are not part of the conversation: hidden ones, calls of tools, empty ones.
    `problems` are the messages that violate the format; the others are used.
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
        """`turn` converts each message, returns None for one that is left out, and raises `BadRecord`."""
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
    """Whether the newest message comes first, as services list them."""
    return len(times) > 1 and times[0] > times[-1] and all(one >= other for one, other in itertools.pairwise(times))


def moment(value: object) -> int | None:
    """Epoch ms of a time as exports write it: ISO 8601, seconds or milliseconds; None if it is no time."""
    if isinstance(value, str) and value.replace(".", "", 1).isdigit():
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _FIRST_MILLIS:
        value = value * 1000
    try:
        return parse_timestamp(value)
    except ValueError:
        return None


def first_moment(fields: Mapping[str, Any], *names: str) -> int | None:
    """The first of these fields that is a time."""
    return next((at for name in names if (at := moment(fields.get(name))) is not None), None)


def text_id(value: object) -> str | None:
    """An id as text; None if there is none."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None


def text_of(content: object, role: str, place: int) -> str:
    """The text of message `place`; empty if it has none. Raises `BadRecord`."""
    try:
        text = words_of(content, role)
    except ValueError as exc:
        raise misshapen(f"message {place}: content {exc}") from exc
    return text if text.strip() else ""


def misshapen(what: str) -> BadRecord:
    """The error of a chat that violates its format."""
    return BadRecord("invalid_fields", what)
