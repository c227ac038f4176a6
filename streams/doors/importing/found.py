"""What an ingested file gives, and what is given with it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Final, Self

import orjson

from schemas.errors import BadRecord, SiltstoneError
from schemas.events import LongTermEvent
from schemas.settings import MemorySettings
from streams.doors.importing.formats import NAMES, Format

MOST_NAMES: Final = 12
"""So many names an error lists."""


@dataclass(frozen=True, slots=True)
class Given:
    """What comes with a file: names for what names none, and when its undated messages were said (epoch ms).

    Without `undated` (standard input) that is `now`, and a message of our own format is left to the worker's clock.
    Of a chat between people `speaker` is the user; `zone` is that of times that name none. `dry`: it is only looked
    at, and need not say who of them is the user.
    """

    now: int
    user: str | None = None
    session: str | None = None
    undated: int | None = None
    format: Format | None = None
    memory: MemorySettings = field(default_factory=MemorySettings)
    speaker: str | None = None
    zone: tzinfo = UTC
    dry: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A record to produce, of `at` (epoch ms); the end of a session that the file does not tell is not `in_file`.

    An event of long-term memory is `lasting`; all else is said in a conversation.
    """

    user_id: str
    value: bytes
    at: int
    in_file: bool = True
    lasting: bool = False

    @classmethod
    def of_event(cls, event: LongTermEvent, in_file: bool = True) -> Self:
        """With the fields that were given: an importance that is not, the worker works out."""
        fields = event.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        return cls(
            event.user_id, orjson.dumps({**fields, "type": event.type}), event.timestamp, in_file, lasting=True
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be used, and where it stands: a number of a line, or in words."""

    line: int
    where: str
    why: BadRecord


@dataclass(frozen=True, slots=True)
class TakenFor:
    """The format was recognised, or given."""

    format: Format


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The number of messages left out as not part of the conversation, or of memories left out as deleted."""

    messages: int


Found = Record | Problem | TakenFor | LeftOut


class NotReadable(SiltstoneError):
    """The file is of no format that is read, or too large: the text says what to do."""


class NamesNoUser(SiltstoneError):
    """The format has no users: pass `--user`."""

    def __init__(self, of: Format) -> None:
        super().__init__(f"{NAMES[of]} name no user: pass --user")


class NamesNoSpeaker(SiltstoneError):
    """Nothing says who of several people the user is: pass `--speaker`."""

    def __init__(self, names: Sequence[str], given: Given) -> None:
        who = ", ".join(name[:40] for name in names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
        wrong = f"none of them is called {given.speaker!r}" if given.speaker else f"who of them is {given.user}?"
        super().__init__(f"it is a chat of {who}: {wrong}: pass --speaker with one of these names")


def digest(*parts: object) -> str:
    """An id that follows from these."""
    joined = "\0".join(str(part) for part in parts)
    return hashlib.blake2b(joined.encode(errors="surrogatepass"), digest_size=16).hexdigest()
